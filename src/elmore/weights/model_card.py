"""The README.md of a model folder: what a person should know before using the model."""

from elmore.config import ModelConfig

# A card without this line was written by hand, and is never overwritten.
GENERATED = "<!-- made by elmore; remove this line to keep your own text -->"


def write_card(config: ModelConfig, *, num_weights: int) -> str:
    """Return the card in Markdown, with the header that the hub reads."""
    about = config.about
    header = ["---", "library_name: elmore", "tags: [elmo, bilm, contextual-word-embeddings]"]
    header += [f"license: {about.license}"] if about.license else []
    header += [f"language: {about.language}"] if about.language else []
    rows = [
        ("layers", f"{config.num_mixed_layers}, of {config.vector_dim} numbers a token"),
        (
            "LSTM",
            f"{config.lstm.num_layers} x {config.lstm.cell_dim} cells each way, "
            f"output {config.lstm.output_dim}",
        ),
        ("tokens", describe_tokens(config)),
        ("weights", f"{num_weights:,}"),
        ("made from", about.source),
        ("trained on", describe_training(config)),
        ("license", about.license or "not recorded"),
    ]
    table = ["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)]
    use = [
        "```python",
        "import elmore",
        "",
        'embedder = elmore.load("this/folder")',
        'vectors = embedder.embed(["The bank of the river ."])',
        "```",
    ]
    notes = ["", about.notes] if about.notes else []
    return "\n".join(
        [
            *header,
            "---",
            GENERATED,
            f"# {about.name}",
            "",
            "A bidirectional language model for contextual word vectors (ELMo).",
            "",
            *table,
            *notes,
            "",
            *use,
            "",
        ]
    )


def describe_tokens(config: ModelConfig) -> str:
    """Say how a token is read."""
    parts = []
    if config.words:
        parts.append(f"{config.words.num_words:,} words of {config.words.embedding_dim} numbers")
    if config.characters:
        characters = config.characters
        parts.append(
            f"{characters.num_units} {characters.units} (up to {characters.max_chars} a token), "
            f"{characters.output_dim} filters, {characters.num_highway_layers} highway layers"
        )
    return "; ".join(parts)


def describe_training(config: ModelConfig) -> str:
    """Say what the weights have learned from."""
    if not config.about.is_trained:
        return "nothing: the weights are random, the vectors carry no meaning"
    return config.about.trained_on or "not recorded"
