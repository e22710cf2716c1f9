"""How fast the checksums of TensorFlow checkpoints are verified.

python -m benchmarks.checksum
"""

import time
from statistics import median

import numpy as np

from elmore.weights.tf_checkpoint.crc32c import crc32c

NUM_BYTES = 1 << 28


def main() -> None:
    """Print the median of five runs."""
    data = np.random.default_rng(0).bytes(NUM_BYTES)
    seconds = []
    for _ in range(5):
        started = time.perf_counter()
        crc32c(data)
        seconds.append(time.perf_counter() - started)
    print(f"{NUM_BYTES / median(seconds) / 1e9:.2f} GB/s, median of 5 runs of 256 MB")


if __name__ == "__main__":
    main()
