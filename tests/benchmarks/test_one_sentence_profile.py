from benchmarks.one_sentence_profile import INNER, OTHER, PARTS, TOTAL, profile_sentence
from elmore.embed.embedder import Embedder
from elmore.kernels.library import find_kernel
from elmore.read.token_cache import TokenCache
from tests import tiny


def test_parts_and_the_rest_are_the_whole():
    find = TokenCache.find
    found = profile_sentence(Embedder(tiny.model()), ["a", "b"], repeats=1, is_cold=True)
    outer = [found[part] for part in [*PARTS, OTHER] if part != INNER]
    assert abs(sum(outer) - found[TOTAL]) < 1e-6
    assert 0 <= found[INNER] < found["token vectors"] < found[TOTAL]
    if find_kernel() is not None:
        assert found["LSTMs"] > 0
        assert found[INNER] > 0
    assert TokenCache.find is find  # nothing stays wrapped
