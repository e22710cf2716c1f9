"""The measurement of the drop-in modules runs all of them on the same sentences."""

from benchmarks.compat_speed import make_groups
from tests.compat.old_models import OldModel


def test_every_contestant_embeds_all_sentences(tmp_path):
    old = OldModel(tmp_path / "model")
    sentences = [["a", "bank"], ["The"], ["b", "c", "d"]]
    names = set()
    for group in make_groups(old.folder / "model.hdf5", sentences):
        assert group[0].name.startswith("elmore.Embedder")
        for contestant in group:
            found = contestant.run()
            assert len(found) in (3, 1)  # sentences, or batches of 64
            names.add(contestant.name.split()[0])
    assert names == {"elmore.Embedder,", "allennlp", "bilm", "elmoformanylangs", "simple_elmo"}
