"""Compare task LSTMs over padded sentences with torch's over packed ones: a CPU training step.

    python -m benchmarks.padded_lstm [--repeats 15]

The same weights and sentences for both, interleaved; prints a Markdown table of medians.
"""

import argparse

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from benchmarks.timing import Contestant, take_turns
from elmore.tasks.networks.encoders import BiLSTM

# Name: input width, width of a direction, sentences, tokens of the longest sentence.
SHAPES = {
    "names": (178, 100, 32, 15),
    "names with ELMo": (690, 100, 32, 15),
    "sentiment": (600, 100, 32, 20),
    "passages": (562, 64, 32, 150),
}


def compare(shape: tuple[int, int, int, int], *, repeats: int) -> tuple[float, float]:
    """Return the median seconds of packed and of padded steps."""
    input_dim, hidden_dim, num_sentences, num_tokens = shape
    padded = BiLSTM(input_dim=input_dim, hidden_dim=hidden_dim)
    packed = nn.LSTM(input_dim, hidden_dim, batch_first=True, bidirectional=True)
    x = torch.randn(num_sentences, num_tokens, input_dim, requires_grad=True)
    # Lengths in a batch are similar: the shortest sentence is a seventh shorter than the longest.
    lengths = torch.linspace(num_tokens, 6 * num_tokens // 7, num_sentences).long()

    def read_packed() -> Tensor:
        packing = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return pad_packed_sequence(packed(packing)[0], batch_first=True)[0]

    timings = take_turns(
        [
            Contestant(name="packed", run=lambda: read_packed().sum().backward()),
            Contestant(name="padded", run=lambda: padded(x, lengths).sum().backward()),
        ],
        repeats=repeats,
    )
    return timings["packed"].median, timings["padded"].median


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15)
    arguments = parser.parse_args()
    print("| input, width, sentences, tokens | packed, ms | padded, ms | speedup |")
    print("|---|---:|---:|---:|")
    for name, shape in SHAPES.items():
        packed, padded = compare(shape, repeats=arguments.repeats)
        print(
            f"| {name}: {', '.join(map(str, shape))} | {1000 * packed:.1f} | {1000 * padded:.1f} "
            f"| {packed / padded:.1f} |"
        )


if __name__ == "__main__":
    main()
