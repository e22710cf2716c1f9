"""Write tables and plots into docs/results/english.md and the model card.

    python -m recipes.english.write_page

Reads, in docs/results/english: results.json (from measure.py), models.json (from
compare_models.py), sizes.json (from compare_sizes.py), vocabulary.json (from vocabulary.py),
recipes/ (from compare_recipes.py), stored.md (printed by benchmarks.stored_precision), and
metrics_second.jsonl and metrics.jsonl (from the training of the second and third edition).
"""

import json
import re
from pathlib import Path
from typing import Any

from elmore.weights.model_folder import find_store
from recipes.pages import fill, write_table

ROOT = Path(__file__).parents[2]
PAGE, FOLDER = ROOT / "docs" / "results" / "english.md", ROOT / "docs" / "results" / "english"
MODEL = ROOT / "src" / "elmore" / "models" / "english"
CARD = Path(__file__).with_name("card.md")
WAYS = {
    "carried": "state carried over within a document",
    "rest": "each sentence from the rest state",
    "zeros": "each sentence from zeros",
}
# Display names for names in results.json.
TITLES = {"GloVe of the words around": "GloVe of the context", "word vectors": "GloVe"}
TUNING_SET = "semeval2007"
LEAST_DIFFERENCE = 0.5
"""Smaller differences, in points, are not counted as differences."""
# Columns of the comparison, in this order, by their names in models.json.
SYSTEMS = {
    "new": "elmore",
    "second": "elmore, second edition",
    "first": "elmore, first edition",
    "glove": "GloVe (50)",
    "minilm": "all-MiniLM-L6",
}
# Rows of the comparison: title, place in models.json, digits.
COMPARED: tuple[tuple[str, tuple[str, ...], int], ...] = (
    ("parts of speech (EWT), accuracy", ("tags", "test"), 1),
    ("word senses, average of the layers, F1", ("senses", "average", "plain, all"), 1),
    ("word senses, layer chosen on dev", ("senses", "layer chosen on dev", "plain, all"), 1),
    ("the same with a prior, F1", ("senses", "layer chosen on dev", "with prior, all"), 1),
    (
        "the same with a prior, macro-F1",
        ("senses", "layer chosen on dev", "with prior, macro-F1"),
        1,
    ),
    ("sentiment (SST-2), accuracy", ("sentiment", "mean"), 1),
    ("entailment (SNLI, 18,000 pairs), accuracy", ("entailment", "mean"), 1),
    ("similarity (STS-B test), mean vectors", ("similarity", "mean", "test"), 1),
    ('similarity, pool="similarity"', ("similarity", "similarity", "test"), 1),
    ("CPU seconds per 1,000 tokens", ("speed", "cpu_seconds_per_1000_tokens"), 3),
)
BLUE, ORANGE, GREEN, GREY = "#1f5fa8", "#e0902f", "#2e8b57", "#888888"


def show_perplexity(results: dict[str, Any]) -> str:
    """Show one row per text and initial state."""
    rows = []
    for name, found in results["perplexity"].items():
        text, way = name.split(", ")
        numbers = [f"{found[side]:.1f}" for side in ("forward", "backward", "both")]
        bits = f"{found['bits_per_character']:.3f}" if "bits_per_character" in found else ""
        unknown = f"{100 * found['unknown_share']:.1f} %"
        title = f"{text.replace('_', ', ')}, {WAYS[way]}"
        rows.append([title, *numbers, bits, unknown, f"{found['tokens']:,}"])
    header = ["held-out text", "forward", "backward", "both", "bits per character", "unknown"]
    return write_table([*header, "tokens"], rows)


def show_tags(results: dict[str, Any]) -> str:
    """Show one row per kind of features, accuracy in percent."""
    rows = []
    for score in results["tags"]:
        name = TITLES.get(score["name"], score["name"])
        if score["shares"]:
            name += f" ({', '.join(f'{share:.2f}' for share in score['shares'])})"
        numbers = [score["dev"]["overall"], score["test"]["overall"], score["test"]["unseen"]]
        rows.append([name, *(f"{100 * number:.1f}" for number in numbers)])
    return write_table(["features", "dev", "test", "test, unseen words"], rows)


def show_senses(results: dict[str, Any]) -> str:
    """Show one row per kind of features and one column per test set."""
    senses = results["senses"]
    sizes = {**senses["num_targets"], "all": sum(senses["num_targets"].values())}
    header = ["F1", *(f"{name} ({size:,})" for name, size in sizes.items())]
    rows = [
        [TITLES.get(name, name), *(f"{scores[test]:.1f}" for test in sizes)]
        for name, scores in senses["f1"].items()
    ]
    return write_table(header, rows)


def show_prior(results: dict[str, Any]) -> str:
    """Show senses with a prior from training counts: F1 and macro-F1, with and without it."""
    rows = []
    for name, found in results["senses"].get("prior", {}).items():
        prior = "" if found["prior"] is None else f"{found['prior']:g}"
        kinds = ("all", f"without {TUNING_SET}", "macro-F1")
        plain = [f"{found[f'plain, {kind}']:.1f}" for kind in kinds]
        # Baselines that are priors themselves have no prior to add.
        with_prior = [f"{found[f'with prior, {kind}']:.1f}" if prior else "" for kind in kinds]
        rows.append([TITLES.get(name, name), *plain, prior, *with_prior])
    header = ["", "F1", f"without {TUNING_SET}", "macro-F1", "prior", "F1"]
    return write_table([*header, f"without {TUNING_SET}", "macro-F1"], rows)


def show_claims(results: dict[str, Any]) -> str:
    """Show what the paper says about layers, and what is found here."""
    tags = {score["name"]: 100 * score["test"]["overall"] for score in results["tags"]}
    senses = {name: scores["all"] for name, scores in results["senses"]["f1"].items()}
    layers = sorted(name for name in tags if name.startswith("layer "))
    lower, upper = layers[1], layers[-1]
    mix = next(name for name in senses if name.startswith("mix chosen"))
    claims = (
        ("syntax is in the lower LSTM layer", "tags", lower, tags[lower], upper, tags[upper]),
        (
            "meaning is in the upper LSTM layer",
            "senses",
            upper,
            senses[upper],
            lower,
            senses[lower],
        ),
        (
            "context helps: the upper layer is above the token layer",
            "senses",
            upper,
            senses[upper],
            layers[0],
            senses[layers[0]],
        ),
        (
            "a learned mix is better than the top layer",
            "tags",
            "learned mix",
            tags["learned mix"],
            upper,
            tags[upper],
        ),
        ("the same for meaning", "senses", mix, senses[mix], upper, senses[upper]),
        (
            "nearest senses beat the most frequent sense",
            "senses",
            upper,
            senses[upper],
            "most frequent sense",
            senses["most frequent sense"],
        ),
    )
    rows = []
    for claim, kind, name, value, other_name, other in claims:
        difference = value - other
        found = "no difference" if abs(difference) < LEAST_DIFFERENCE else "yes"
        found = "no" if difference <= -LEAST_DIFFERENCE else found
        rows.append([claim, kind, f"{name}: {value:.1f}", f"{other_name}: {other:.1f}", found])
    return write_table(["claim", "measured by", "", "compared with", "found"], rows)


def show_models(models: dict[str, Any]) -> str:
    """Show one column per model and one row per kind of work; what was not measured is left out."""
    columns = {name: title for name, title in SYSTEMS.items() if name in models}
    if "first" in columns and "new" not in columns:
        columns["first"] = SYSTEMS["new"]  # there is no other edition to tell it from
    rows = []
    for title, path, digits in COMPARED:
        cells = []
        for name in columns:
            found: Any = models[name]
            for key in path:
                found = found.get(key) if isinstance(found, dict) else None
            cells.append("" if found is None else f"{found:.{digits}f}")
        if any(cells):
            rows.append([title, *cells])
    return write_table(["", *columns.values()], rows)


def show_vocabulary(vocabulary: dict[str, Any]) -> str:
    """Show the unknown share of each held-out source, by the size of the vocabulary."""
    sizes = list(next(iter(vocabulary.values()))["unknown"])
    rows = [
        [
            name.replace("_", ", "),
            f"{found['tokens']:,}",
            *(f"{100 * found['unknown'][size]:.1f} %" for size in sizes),
        ]
        for name, found in vocabulary.items()
    ]
    return write_table(["held-out text", "tokens", *(f"{int(size):,}" for size in sizes)], rows)


def show_recipes(recipes: list[dict[str, Any]]) -> str:
    """Show the recipes that were compared, best first."""
    rows = []
    for recipe in sorted(recipes, key=lambda recipe: recipe["curve"][-1]["perplexity"]):
        before, end = recipe["curve"][-2:]
        rows.append(
            [
                recipe["name"],
                f"{recipe['num_steps']:,}",
                f"{end['tokens'] / 1e6:.2f}M",
                *(
                    f"{line[key]:.0f}"
                    for line in (before, end)
                    for key in ("perplexity", "averaged_perplexity")
                ),
            ]
        )
    header = ["recipe", "steps", "tokens", "before the decay", "averaged", "end", "averaged"]
    return write_table(header, rows)


def show_words(results: dict[str, Any], source: str) -> str:
    """Show how often the nearest use of each word has the same label, in percent."""
    words = results["words"][source]
    measured = {word: found for word, found in words.items() if "chance" in found}
    views = [name for name in next(iter(measured.values())) if not name.startswith("num_")]
    rows = [
        [
            word,
            str(found["num_uses"]),
            str(found["num_labels"]),
            *(f"{100 * found[view]:.0f}" for view in views),
        ]
        for word, found in measured.items()
    ]
    uses = [found["num_uses"] for found in measured.values()]
    means = [
        sum(found[view] * found["num_uses"] for found in measured.values()) / sum(uses)
        for view in views
    ]
    rows.append(["all uses", str(sum(uses)), "", *(f"**{100 * mean:.0f}**" for mean in means)])
    titles = [TITLES.get(view, view) for view in views]
    table = write_table(["word", "uses", "labels", *titles], rows)
    rare = [
        f"{word} ({found['num_uses']})" for word, found in words.items() if word not in measured
    ]
    return table + (
        f"\n\nLeft out as too rare or with only one label: {', '.join(rare)}." if rare else ""
    )


def show_sizes(sizes: list[dict[str, Any]]) -> str:
    """Show one row per size that was tried."""
    rows = [
        [
            size["name"],
            f"{size['minutes']:.0f}",
            f"{size['tokens'] / 1e6:.1f}M",
            f"{size['perplexity']:.1f}",
            f"{size['tags']:.1f}",
            f"{size['senses']:.1f}",
        ]
        for size in sizes
    ]
    header = ["size", "minutes", "tokens", "held-out perplexity", "tags", "senses"]
    return write_table(header, rows)


def show_facts(model: Path) -> str:
    """Show the size of a model and of its files, as a table."""
    config = json.loads((model / "config.json").read_text())
    softmax = json.loads((model / "softmax.json").read_text())
    lstm, characters = config["lstm"], config["characters"]
    size = sum(
        (model / name).stat().st_size for name in ("model.safetensors", "softmax.safetensors")
    )
    stored, softmax_stored = (
        find_store(model / name) for name in ("model.safetensors", "softmax.safetensors")
    )
    if softmax_stored != stored:
        stored += f", the LM head as {softmax_stored}"
    rows = [
        ("layers", f"{lstm['num_layers'] + 1}, of {2 * lstm['output_dim']} numbers per token"),
        (
            "LSTM",
            f"{lstm['num_layers']} x {lstm['cell_dim']} cells per direction, "
            f"output {lstm['output_dim']}",
        ),
        (
            "tokens",
            f"bytes (up to {characters['max_chars']} per token), "
            f"{sum(number for _, number in characters['filters'])} filters, "
            f"highway layers: {characters['num_highway_layers']}",
        ),
        ("LM head", f"{softmax['num_words']:,} words"),
        ("trained on", f"{softmax['run']['tokens'] / 1e6:.1f} million tokens and sentence ends"),
        ("files", f"{size / 1e6:.1f} MB of weights, stored as {stored}"),
    ]
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)])


def draw_sizes(sizes: list[dict[str, Any]], path: Path) -> None:
    """Draw held-out perplexity against minutes, one line per size."""
    from matplotlib import pyplot  # noqa: PLC0415

    figure, axes = pyplot.subplots(figsize=(7.5, 4.2), layout="constrained")
    for size, color in zip(sizes, (BLUE, ORANGE, GREEN, GREY), strict=False):
        minutes = [point[0] for point in size["curve"]]
        axes.plot(minutes, [point[1] for point in size["curve"]], color=color, label=size["name"])
        axes.plot(size["minutes"], size["perplexity"], "o", color=color)
    axes.set(
        yscale="log",
        xlabel="minutes of training",
        ylabel="held-out perplexity",
        title="Sizes tried: constant learning rate (line), after the decay (dot)",
    )
    _tidy(axes, [200, 250, 300, 400, 500])
    axes.legend(frameon=False)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def draw_runs(runs: dict[str, list[dict[str, Any]]], path: Path) -> None:
    """Draw held-out perplexity of both directions against tokens, one run after the other."""
    from matplotlib import pyplot  # noqa: PLC0415

    figure, axes = pyplot.subplots(figsize=(7.5, 4.2), layout="constrained")
    before = 0.0
    for number, (name, lines) in enumerate(runs.items()):
        points = [line for line in lines if line["kind"] == "heldout"]
        tokens = [before + point["tokens"] / 1e6 for point in points]
        for side, color in (("forward", BLUE), ("backward", ORANGE)):
            values = [point[f"{side}_perplexity"] for point in points]
            axes.plot(tokens, values, color=color, label=side if number == 0 else None)
        axes.axvline(before, color=GREY, linewidth=0.8)
        axes.annotate(
            name,
            (before, 0),
            (4, 5),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            color=GREY,
        )
        before = tokens[-1]
    axes.set(
        yscale="log",
        xlabel="million tokens",
        ylabel="held-out perplexity",
        title="Training of the English model",
    )
    _tidy(axes, [70, 80, 90, 100, 120, 150, 200, 250, 300, 400, 500])
    axes.legend(frameon=False, loc="upper right")
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def draw_layers(results: dict[str, Any], path: Path) -> None:
    """Draw the accuracy of each layer for tags and senses, and baselines."""
    from matplotlib import pyplot  # noqa: PLC0415

    tags = {score["name"]: 100 * score["test"]["overall"] for score in results["tags"]}
    senses = {name: scores["all"] for name, scores in results["senses"]["f1"].items()}
    figure, all_axes = pyplot.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    for axes, values, baselines, title in (
        (all_axes[0], tags, ("most frequent tag", "word vectors"), "parts of speech, accuracy"),
        (
            all_axes[1],
            senses,
            ("most frequent sense", "GloVe of the words around"),
            "word senses, F1",
        ),
    ):
        layers = [name for name in values if re.fullmatch(r"layer \d+", name)]
        axes.bar(layers, [values[name] for name in layers], color=BLUE, width=0.6)
        for name, style in zip(baselines, ("--", ":"), strict=True):
            axes.axhline(values[name], color=ORANGE, linestyle=style, label=TITLES.get(name, name))
        shown = [values[name] for name in (*layers, *baselines)]
        axes.set(title=title, ylim=(min(shown) - 3, max(shown) + 2))
        _hide_frame(axes)
        axes.legend(
            frameon=False, fontsize=8, ncol=2, loc="upper center", bbox_to_anchor=(0.5, -0.1)
        )
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def _tidy(axes: Any, ticks: list[float]) -> None:
    from matplotlib import ticker  # noqa: PLC0415

    low, high = axes.get_ylim()
    axes.set_yticks([tick for tick in ticks if low <= tick <= high])
    axes.yaxis.set_major_formatter(ticker.FormatStrFormatter("%d"))
    axes.yaxis.set_minor_locator(ticker.NullLocator())
    axes.grid(axis="y", alpha=0.3)
    _hide_frame(axes)


def _hide_frame(axes: Any) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def main() -> None:
    """Write tables and plots."""
    tables = make_tables()
    PAGE.write_text(fill(PAGE.read_text(), tables))
    (MODEL / "README.md").write_text(fill(CARD.read_text(), tables))
    sizes, results = read_json("sizes.json"), read_json("results.json")
    runs = {
        title: [json.loads(line) for line in (FOLDER / name).read_text().splitlines()]
        for title, name in (
            ("second edition", "metrics_second.jsonl"),
            ("third edition", "metrics.jsonl"),
        )
    }
    draw_sizes(sizes, FOLDER / "sizes.png")
    draw_runs(runs, FOLDER / "curve.png")
    draw_layers(results, FOLDER / "layers.png")


def make_tables() -> dict[str, str]:
    """Return all tables by name."""
    results = read_json("results.json")
    models = read_json("models.json") if (FOLDER / "models.json").exists() else {}
    return {
        "facts": show_facts(MODEL),
        "sizes": show_sizes(read_json("sizes.json")),
        "perplexity": show_perplexity(results),
        "tags": show_tags(results),
        "senses": show_senses(results),
        "words by sense": show_words(results, "SemCor senses"),
        "words by part of speech": show_words(results, "EWT parts of speech"),
        "prior": show_prior(results),
        "claims": show_claims(results),
        "models": show_models(models),
        "vocabulary": show_vocabulary(read_json("vocabulary.json")),
        "recipes": show_recipes(
            [json.loads(path.read_text()) for path in sorted((FOLDER / "recipes").glob("*.json"))]
        ),
        "stored": (FOLDER / "stored.md").read_text().strip(),
    }


def read_json(name: str) -> Any:
    """Read a file of results."""
    return json.loads((FOLDER / name).read_text())


if __name__ == "__main__":
    main()
