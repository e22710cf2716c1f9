"""The README.md of a model folder: what users should know about the model."""

import json
import re
from pathlib import Path

from elmore.config import About, ModelConfig
from elmore.files.atomic import replace_file
from elmore.wording import count

# A card without this line was written by hand and is never overwritten.
GENERATED = "<!-- made by elmore; remove this line to keep your own text -->"
# The licenses and languages that the hub accepts; it rejects cards with anything else.
LICENSE_ID = re.compile(r"[a-z0-9][a-z0-9.+-]*")
LANGUAGE_CODE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9-]+)?")


def write_card(path: Path, config: ModelConfig, *, num_weights: int) -> None:
    """Write the card of a model, unless there is one that was written by hand."""
    if path.is_file() and GENERATED not in path.read_text(encoding="utf-8", errors="replace"):
        return
    with replace_file(path) as temporary:
        text = _compose_card(config, num_weights=num_weights)
        temporary.write_text(text, encoding="utf-8", errors="replace")


def _compose_card(config: ModelConfig, *, num_weights: int) -> str:
    """Return the card in Markdown, with the header that the hub reads."""
    about = config.about
    rows = [
        ("layers", f"{config.num_mixed_layers}, of {config.vector_dim} numbers per token"),
        (
            "LSTM",
            f"{config.lstm.num_layers} x {config.lstm.cell_dim} cells per direction, "
            f"output {config.lstm.output_dim}",
        ),
        ("tokens", describe_tokens(config)),
        ("weights", f"{num_weights:,}"),
        ("made from", about.source),
        ("trained on", describe_training(config)),
        ("language", about.language or "not recorded"),
        ("license", about.license or "not recorded"),
    ]
    lines = [
        *_write_header(about),
        GENERATED,
        f"# {_one_line(about.name)}",
        "",
        "A bidirectional language model for contextual word vectors (ELMo).",
        "",
        "| | |",
        "|---|---|",
        *(f"| {name} | {_one_line(value)} |" for name, value in rows),
        *(["", about.notes] if about.notes else []),
        *(["", about.training] if about.training else []),
        "",
        "```python",
        "import elmore",
        "",
        'embedder = elmore.load("this/folder")',
        'vectors = embedder.embed(["The bank of the river ."])',
        "```",
        "",
    ]
    return "\n".join(lines)


def _write_header(about: About) -> list[str]:
    """Return YAML with JSON strings, so that `no` means Norwegian and not false."""
    header = ["---", "library_name: elmore", "tags: [elmo, bilm, contextual-word-embeddings]"]
    if about.license and LICENSE_ID.fullmatch(about.license):
        header.append(f"license: {json.dumps(about.license)}")
    elif about.license:
        header += ["license: other", f"license_name: {json.dumps(about.license)}"]
    if about.language and LANGUAGE_CODE.fullmatch(about.language):
        header.append(f"language: {json.dumps(about.language)}")
    return [*header, "---"]


def _one_line(text: str) -> str:
    """Make a text fit into a heading or a table cell."""
    return " ".join(text.split()).replace("|", "\\|")


def describe_tokens(config: ModelConfig) -> str:
    """Describe how the model reads tokens."""
    parts = []
    if config.words:
        parts.append(f"{config.words.num_words:,} words of {config.words.embedding_dim} numbers")
    if config.characters:
        characters = config.characters
        parts.append(
            f"{characters.num_units} {characters.units} (up to {characters.max_chars} per token), "
            f"{characters.output_dim} filters, "
            f"{count(characters.num_highway_layers, 'highway layer')}"
        )
    return "; ".join(parts)


def describe_training(config: ModelConfig) -> str:
    """Describe what the weights were trained on."""
    if not config.about.is_trained:
        return "nothing: the weights are random and the vectors carry no meaning"
    return config.about.trained_on or "not recorded"
