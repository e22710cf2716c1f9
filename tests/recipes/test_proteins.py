"""The protein-like sequences of the guide: the same everywhere, and with structure to learn."""

import itertools
import random

from elmore.text.files import read_text
from recipes.proteins.make_proteins import make_part, make_protein, write_fasta


def test_a_seed_gives_one_file(tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        write_fasta(tmp_path / f"{name}.fasta", num_records=5, seed=seed)
    first, same, other = ((tmp_path / f"{name}.fasta").read_text() for name in "abc")
    assert first == same != other
    records = list(read_text(tmp_path / "a.fasta"))
    assert [record.key for record in records] == [f"made_{number}" for number in range(1, 6)]
    assert "".join(records[0].tokens).startswith("MDILAEAKELGKDV")


def test_proteins_start_with_methionine_and_have_usual_residues():
    made = [make_protein(random.Random(seed)) for seed in range(50)]
    assert all(protein.startswith("M") for protein in made)
    assert set("".join(made)) <= set("ACDEFGHIKLMNPQRSTVWY")


def test_a_strand_has_hydrophobic_residues_in_every_second_position():
    even = odd = total = 0
    for seed in range(300):
        is_hydrophobic = [letter in "VIFLW" for letter in make_part("strand", random.Random(seed))]
        for place, next_place in itertools.pairwise(is_hydrophobic):
            total += 1
            even += place != next_place
            odd += place and next_place
    assert even > 0.6 * total
    assert odd < 0.1 * total
