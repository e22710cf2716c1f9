"""Names that other libraries use for what an embedder does, for error messages."""

import difflib

OTHER_METHODS = {
    "encode": "use embed for one vector per token, or sentence_vectors for one per sentence",
    "forward": "use embed, or elmore.Elmo for a PyTorch module",
    "embed_sentence": "use embed",
    "embed_sentences": "use embed",
    "embed_batch": "use embed",
    "sents2elmo": "use embed",
    "save_pretrained": "use save",
    "save_to_disk": "use save",
    "push_to_hub": "use load_model().push_to_hub",
    "from_pretrained": "use elmore.load",
    "parameters": "use load_model() for the biLM, or elmore.Elmo for a PyTorch module",
    "train": "use elmore.Elmo for a PyTorch module",
    "eval": "an embedder never trains, so this is not needed",
    "cpu": 'use to("cpu")',
    "cuda": 'use to("cuda")',
}

ARGUMENTS = ("layers", "tokenized", "output", "progress", "rows")
_OTHER_ARGUMENTS = {
    "batch_size": "batches are measured in tokens: give tokens_per_batch to elmore.load",
    "tokens_per_batch": "give it to elmore.load",
    "device": "give it to elmore.load, or use to(device)",
    "show_progress_bar": "use progress=True",
    "convert_to_tensor": 'use output="torch"',
    "convert_to_numpy": 'use output="numpy"',
    "return_tensors": 'use output="torch"',
    "is_split_into_words": "use tokenized=True",
    "output_layer": "use layers=",
    "mix": "use layers=",
}


def suggest_argument(name: str) -> str:
    """Return what to use instead of an argument that `embed` does not have.

    >>> suggest_argument("layer"), suggest_argument("show_progress_bar")
    ("did you mean 'layers'?", 'use progress=True')
    """
    if name in _OTHER_ARGUMENTS:
        return _OTHER_ARGUMENTS[name]
    close = difflib.get_close_matches(name, ARGUMENTS, n=1)
    return f"did you mean {close[0]!r}?" if close else f"it has: {', '.join(ARGUMENTS)}"
