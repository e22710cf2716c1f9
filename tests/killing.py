"""Kill a command at random moments, and run it again until it ends by itself."""

import random
import signal
import subprocess
import time
from collections.abc import Callable, Sequence

NUM_KILLS = 3


def run_with_kills(command: Sequence[str], *, has_started: Callable[[], bool], seed: int) -> None:
    """Run a command until it succeeds; kill its first runs soon after `has_started`."""
    moments = random.Random(seed)
    kills = 0
    for attempt in range(NUM_KILLS + 5):
        process = subprocess.Popen(command, stderr=subprocess.PIPE)
        while process.poll() is None and not has_started():
            time.sleep(0.01)
        time.sleep(moments.random() * 0.3)
        if attempt < NUM_KILLS and process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += 1
        _, errors = process.communicate()
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL, errors.decode()
    assert process.returncode == 0
    assert kills >= 1
