"""Where published models can be downloaded; elmore itself never fetches them."""

from urllib.parse import urlsplit

ALLENNLP = "https://allennlp.s3.amazonaws.com/models/elmo/"
# The names of models in other libraries, and their files below ALLENNLP.
FILES = {
    "small": "2x1024_128_2048cnn_1xhighway/elmo_2x1024_128_2048cnn_1xhighway_{}",
    "medium": "2x2048_256_2048cnn_1xhighway/elmo_2x2048_256_2048cnn_1xhighway_{}",
    "original": "2x4096_512_2048cnn_2xhighway/elmo_2x4096_512_2048cnn_2xhighway_{}",
    "large": "2x4096_512_2048cnn_2xhighway_5.5B/elmo_2x4096_512_2048cnn_2xhighway_5.5B_{}",
    "pt": "contributed/pt/elmo_pt_{}",
    "pubmed": "contributed/pubmed/elmo_2x4096_512_2048cnn_2xhighway_{}",
}
OTHER_NAMES = {
    "default": "original",
    "elmo": "original",
    "original-5.5b": "large",
    "original_5.5b": "large",
    "5.5b": "large",
    "portuguese": "pt",
}
# Weights whose name does not follow from that of their options.
OTHER_WEIGHTS = {"pubmed": "weights_PubMed_only.hdf5"}
# (start of a name or address, what to do)
ELSEWHERE = (
    (
        "tfhub.dev/google/elmo",
        "its weights are in TensorFlow's own format, which elmore cannot read; AllenNLP's model of "
        "the same size and training text is {original}",
    ),
    (
        "seqvec",
        "download weights.hdf5 and options.json of SeqVec from "
        "https://rostlab.org/~deepppi/embedding_repo/embedding_models/seqvec/ into one folder, and "
        "give its path",
    ),
)


def advise_on_download(source: str) -> str | None:
    """Return what to download if `source` is a web address or the name of a published model."""
    name = source.lower().strip("/")
    address = urlsplit(source)
    is_address = address.scheme.lower() in ("http", "https", "ftp", "s3", "gs")
    plain = name.split("://", 1)[-1].removeprefix("www.")
    for start, advice in ELSEWHERE:
        if plain.startswith(start):
            return advice.format(original=_find_weights("original"))
    if is_address and plain.startswith("huggingface.co/"):
        return f"give its hub id {'/'.join(address.path.split('/')[1:3])!r:.100} instead"
    if is_address:
        options = source.replace("_weights.hdf5", "_options.json")
        beside = f" and {options}" if options != source else ""
        return f"download {source:.300}{beside:.300} yourself, and give the path of the file"
    known = OTHER_NAMES.get(name, name)
    if known not in FILES:
        return None
    options = ALLENNLP + FILES[known].format("options.json")
    return f"download {_find_weights(known)} and {options}, and give the path of the weights"


def _find_weights(name: str) -> str:
    return ALLENNLP + FILES[name].format(OTHER_WEIGHTS.get(name, "weights.hdf5"))
