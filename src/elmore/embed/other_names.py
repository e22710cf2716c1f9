"""Names that other libraries use for what an embedder does, for error messages."""

from typing import Any

OTHER_METHODS = {
    "encode": "use embed for one vector per token, or sentence_vectors for one per sentence",
    "forward": "use embed, or elmore.Elmo for a PyTorch module",
    "embed_sentence": "use embed",
    "embed_sentences": "use embed",
    "embed_batch": "use embed",
    "sents2elmo": "use embed",
    "get_elmo_vectors": "use embed",
    "get_elmo_vector_average": "use sentence_vectors",
    "similarity": 'use the cosines of sentence_vectors(..., pool="similarity")',
    "save_pretrained": "use save",
    "save_to_disk": "use save",
    "push_to_hub": "use load_model().push_to_hub",
    "from_pretrained": "use elmore.load",
    "parameters": "use load_model() for the biLM, or elmore.Elmo for a PyTorch module",
    "train": "use elmore.Elmo for a PyTorch module",
    "eval": "an embedder never trains, so this is not needed",
    "cpu": 'use to("cpu")',
    "cuda": 'use to("cuda")',
    "half": 'load it with elmore.load(..., precision="bf16")',
    "bfloat16": 'load it with elmore.load(..., precision="bf16")',
    "dim": "use vector_dim",
    "embedding_dim": "use vector_dim",
    "hidden_size": "use vector_dim",
    "get_output_dim": "use vector_dim",
    "get_sentence_embedding_dimension": "use vector_dim",
    "max_seq_length": "use max_sentence_tokens",
    "tokenizer": "use tokenize",
}

_NORMALIZE = "divide the vectors by np.linalg.norm(vectors, axis=-1, keepdims=True)"

OTHER_ARGUMENTS = {
    "batch_size": "give it to elmore.load",
    "tokens_per_batch": "give it to elmore.load",
    "device": "give it to elmore.load, or use to(device)",
    "show_progress_bar": "use progress=True",
    "convert_to_tensor": 'use output="torch"',
    "convert_to_numpy": 'use output="numpy"',
    "return_tensors": 'use output="torch"',
    "is_split_into_words": "use tokenized=True",
    "max_seq_length": "give max_sentence_tokens to elmore.load; it truncates nothing",
    "output_layer": "use layers=",
    "mix": "use layers=",
    "normalize": _NORMALIZE,
    "normalize_embeddings": _NORMALIZE,
    "pooling": "use sentence_vectors(..., pool=)",
}

# Of AllenNLP's Elmo.
OTHER_ELMO_ARGUMENTS = {
    "options_file": "give model=elmore.load_model(weights, options=...)",
    "weight_file": "give model=elmore.load_model(weights, options=...)",
    "module": "use model=",
    "num_output_representations": "use num_representations=",
    "requires_grad": "use trains_bilm=",
    "do_layer_norm": "use normalizes=",
    "keep_sentence_boundaries": "use keeps_markers=",
    "scalar_mix_parameters": "use initial_logits= and trains_mix=False",
    "vocab_to_cache": "not needed: token vectors of a frozen biLM are cached",
}


def explain_name(name: str) -> str:
    """Return the message for a name that an embedder does not have."""
    hint = f"; {OTHER_METHODS[name]}" if name in OTHER_METHODS else ""
    return f"an Embedder has no {name!r}{hint}"


class ExplainsNames(type):
    """A class that explains other libraries' names of its class methods."""

    def __getattr__(cls, name: str) -> Any:
        raise AttributeError(explain_name(name))
