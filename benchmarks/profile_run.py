"""Profile embedding: the time per function, and the time outside of arithmetic."""

import cProfile
import io
import pstats
import time
from dataclasses import replace

from benchmarks.sentences import Sentences
from elmore.config import ModelConfig
from elmore.embed.embedder import Embedder
from elmore.weights.elmo_model import ElmoModel, new_model

_NUM_SHOWN = 20
_COMPILED = "~"  # the file that cProfile names for functions not written in Python


def profile_embedding(model: ElmoModel, sentences: Sentences) -> str:
    """Embed once with an empty cache and once with a full one; return a report."""
    embedder, idle_embedder = Embedder(model), Embedder(new_model(shrink(model.config), seed=0))
    for one in (embedder, idle_embedder):
        one.embed(sentences[:4], layers="all")
        one.clear_cache()
    parts = []
    for cache in ("cold", "warm"):
        idle_seconds = time_layers(idle_embedder, sentences)
        profiler = cProfile.Profile()
        profiler.enable()
        seconds = time_layers(embedder, sentences)
        profiler.disable()
        parts.append(
            f"\nCase b, {cache} cache: {seconds:.3f} s, profiled\n"
            f"the same sentences with next to no arithmetic: {idle_seconds:.3f} s, "
            f"{idle_seconds / seconds:.1%}\n{describe_profile(profiler)}"
        )
    return "\n".join(parts)


def shrink(config: ModelConfig) -> ModelConfig:
    """Shrink the widths but not the number of layers and steps: mostly Python overhead is left."""
    assert config.characters is not None
    filters = tuple((width, 1) for width, _ in config.characters.filters)
    return replace(
        config,
        lstm=replace(config.lstm, cell_dim=8, output_dim=8),
        characters=replace(config.characters, embedding_dim=1, filters=filters),
    )


def time_layers(embedder: Embedder, sentences: Sentences) -> float:
    """Return the seconds of one run."""
    started = time.perf_counter()
    embedder.embed(sentences, layers="all")
    return time.perf_counter() - started


def describe_profile(profiler: cProfile.Profile) -> str:
    """Return the fraction of time in Python functions, and the slowest functions."""
    text = io.StringIO()
    stats = pstats.Stats(profiler, stream=text).strip_dirs()
    own_seconds = {key: values[2] for key, values in stats.stats.items()}
    in_python = sum(seconds for key, seconds in own_seconds.items() if key[0] != _COMPILED)
    share = in_python / sum(own_seconds.values())
    stats.sort_stats("tottime").print_stats(_NUM_SHOWN)
    # cProfile does not see operators between tensors, so their time counts for the caller.
    return (
        f"in bodies of Python functions, operators on tensors included: {share:.1%}\n"
        f"{text.getvalue().rstrip()}"
    )
