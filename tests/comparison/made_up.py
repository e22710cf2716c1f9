"""Results that nobody measured, for tests of the report."""

from elmore.comparison.results import Comparison, RunResult
from elmore.tasks.fit.progress import EpochResult


def make_run(variant="without", *, share=1.0, seed=0, test=80.0, dev=None, **changes):
    """Return a run of three epochs; its score on dev is 1 above the one on test."""
    dev = test + 1 if dev is None else dev
    values = {
        "variant": variant,
        "share": share,
        "seed": seed,
        "num_train": round(1000 * share),
        "scores": {"dev": {"f1": dev}, "test": {"f1": test, "recall": test - 5}},
        "curve": [make_point(epoch, dev=dev - 3 + epoch) for epoch in (1, 2, 3)],
        "layer_shares": {} if variant == "without" else {"below": [0.2, 0.5, 0.3]},
        "scale": {} if variant == "without" else {"below": 1.5},
        "best_epoch": 3,
        "seconds": 90.0,
        "num_parameters": 12345,
    }
    return RunResult(**{**values, **changes})


def make_point(epoch, *, dev, loss=0.5):
    return EpochResult(epoch=epoch, step=10 * epoch, loss=loss, dev=dev, seconds=30.0 * epoch)


def make_comparison(runs, **changes):
    values = {
        "task": "names",
        "main_score": "f1",
        "elmo": "small-english",
        "elmo_fingerprint": "0123456789abcdef",
        "words": "glove.50d.txt",
        "num_examples": {"train": 1000, "dev": 200, "test": 300},
        "perplexity": None,
        "settings": {"task": {"hidden_dim": 100}, "epochs": 3},
        "runs": list(runs),
    }
    return Comparison(**{**values, **changes})


def make_runs(variant, scores, *, share=1.0):
    """Return a run a score, with seeds from 0."""
    return [
        make_run(variant, share=share, seed=seed, test=score) for seed, score in enumerate(scores)
    ]
