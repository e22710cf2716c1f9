"""Write protein-like sequences as FASTA, to try training on another alphabet than text.

    python recipes/proteins/make_proteins.py --records 2000 --out proteins.fasta

Not real proteins: each is a row of helices, strands and loops. Helices have hydrophobic residues in
every third or fourth position, strands in every second, and loops prefer small and polar
residues. So a residue can be predicted in part from its neighbors on both sides,
and from where the last hydrophobic residues were.
"""

import argparse
import random
from collections.abc import Iterator
from pathlib import Path

HYDROPHOBIC = {"helix": "LLLAAMIVF", "strand": "VVVIIFYLW"}
POLAR = {"helix": "EEKKQRAD", "strand": "TTSRKYQ"}
LOOP = "GGGPPNNDDSSTKEHC"
LENGTHS = {"helix": (8, 22), "strand": (4, 9), "loop": (2, 8)}
# Where the hydrophobic side of a helix is, as it turns once in 3.6 residues.
HELIX_SIDE = (True, False, False, True, True, False, False)
SHARE_OF_CHANCE = 0.15
LINE_WIDTH = 60


def make_protein(chance: random.Random) -> str:
    """Return a sequence of about 100 residues."""
    residues = ["M"]
    kind = "loop"
    for _ in range(chance.randint(7, 15)):
        kind = chance.choice(["helix", "strand"]) if kind == "loop" else "loop"
        residues += make_part(kind, chance)
    return "".join(residues)


def make_part(kind: str, chance: random.Random) -> Iterator[str]:
    """Yield the residues of a helix, a strand or a loop."""
    start = chance.randrange(7)
    for position in range(chance.randint(*LENGTHS[kind])):
        if kind == "loop" or chance.random() < SHARE_OF_CHANCE:
            yield chance.choice(LOOP)
            continue
        is_inside = (
            HELIX_SIDE[(start + position) % 7] if kind == "helix" else (start + position) % 2 == 0
        )
        yield chance.choice((HYDROPHOBIC if is_inside else POLAR)[kind])


def write_fasta(path: Path, *, num_records: int, seed: int) -> None:
    """Write the sequences; equal seeds give equal files."""
    chance = random.Random(seed)
    with path.open("w") as file:
        for number in range(1, num_records + 1):
            protein = make_protein(chance)
            file.write(f">made_{number} {len(protein)} residues\n")
            for start in range(0, len(protein), LINE_WIDTH):
                file.write(protein[start : start + LINE_WIDTH] + "\n")


def main() -> None:
    """Read the arguments and write the file."""
    parser = argparse.ArgumentParser(description="Write protein-like sequences as FASTA.")
    parser.add_argument("--records", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    write_fasta(arguments.out, num_records=arguments.records, seed=arguments.seed)


if __name__ == "__main__":
    main()
