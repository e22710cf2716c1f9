"""The softmax of a language model on disk; embedding never reads these files.

softmax.safetensors  softmax_words.txt  softmax.json (written last; without it the others are void)
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from elmore.build import weight_shapes, without_weights
from elmore.config import (
    MAX_DIM,
    MAX_VOCABULARY,
    SOFTMAX_ON_DISK,
    Precision,
    read_precision,
)
from elmore.errors import ElmoreError, ModelError
from elmore.files.atomic import make_folder, replace_file, write_json
from elmore.files.untrusted import check_file, is_count, read_json
from elmore.model.adaptive_softmax import AdaptiveSoftmax
from elmore.model.word_softmax import WordSoftmax
from elmore.text.vocabulary import BEGIN_WORD, END_WORD, UNKNOWN_WORD, number_entries, write_entries
from elmore.weights.entry_files import check_entries, read_list
from elmore.weights.model_folder import (
    find_store,
    quantize_tensors,
    read_tensors,
    round_tensors,
    write_tensors,
)

FORMAT, INT8_FORMAT = 1, 2
"""Versions that cannot read int8 refuse the second format and say so."""
WEIGHTS, WORDS, SETTINGS = "softmax.safetensors", "softmax_words.txt", "softmax.json"
FILES = [WEIGHTS, WORDS, SETTINGS]
LOG_SHARES = "log_shares"

Softmax = WordSoftmax | AdaptiveSoftmax


@dataclass(frozen=True, kw_only=True)
class SavedSoftmax:
    """The contents of the files."""

    softmax: Softmax
    words: list[str]
    log_shares: Tensor  # (V,)
    model: str
    """The fingerprint of the biLM that the softmax was trained with."""
    run: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class SoftmaxFacts:
    """What is known about a softmax without reading its weights."""

    kind: str
    num_words: int
    model: str
    store: str | None
    """None if the weights are missing; a hub model's are only downloaded when it predicts words."""
    num_bytes: int | None


def check_words(words: Sequence[str], *, num_words: int) -> None:
    """Check that a list names every word of a softmax once, including the markers."""
    if len(words) != num_words:
        raise ModelError(
            f"the list of softmax words has {len(words)} entries for {num_words} words; "
            "give the list that belongs to the softmax"
        )
    check_entries(words)
    try:
        known = number_entries(words)
    except ElmoreError as error:
        raise ModelError(f"softmax words: {error}") from error
    for needed in (BEGIN_WORD, END_WORD, UNKNOWN_WORD):
        if needed not in known:
            raise ModelError(
                f"the softmax words lack {needed}; add it, as a language model needs it"
            )


@contextmanager
def replace_softmax(folder: Path, saved: SavedSoftmax, *, store: str = "f32") -> Iterator[None]:
    """Write a softmax next to the model that the caller writes inside the `with` block.

    Its files are put in place after the model's, `softmax.json` last, because the others are void
    without it. So no crash can leave a valid softmax next to weights of another model.
    """
    check_words(saved.words, num_words=saved.softmax.num_words)
    tensors = {**saved.softmax.state_dict(), LOG_SHARES: saved.log_shares}
    chosen = read_precision("store_softmax", store, SOFTMAX_ON_DISK)
    is_int8 = chosen is Precision.INT8
    stored = (
        quantize_tensors(tensors, file=WEIGHTS)
        if is_int8
        else round_tensors(tensors, store=chosen, file=WEIGHTS)
    )
    make_folder(folder)
    with (
        replace_file(folder / WORDS) as words_path,
        replace_file(folder / WEIGHTS) as weights_path,
    ):
        write_entries(words_path, saved.words)
        write_tensors(weights_path, stored)
        yield
        (folder / SETTINGS).unlink(missing_ok=True)
    settings = {
        "format": INT8_FORMAT if is_int8 else FORMAT,
        **_describe(saved.softmax),
        "model": saved.model,
        "run": saved.run,
    }
    with replace_file(folder / SETTINGS) as temporary:
        write_json(temporary, settings)


def _describe(softmax: Softmax) -> dict[str, Any]:
    shape = {"num_words": softmax.num_words, "dim": softmax.dim}
    if isinstance(softmax, WordSoftmax):
        return {"kind": "words", **shape}
    return {"kind": "adaptive", **shape, "cutoffs": list(softmax.cutoffs)}


def has_softmax(folder: Path) -> bool:
    """Return whether any softmax file exists, complete or not."""
    return any((folder / name).exists() for name in FILES)


def remove_softmax(folder: Path) -> None:
    """Delete the softmax files, `softmax.json` first because the others are void without it."""
    for name in reversed(FILES):
        (folder / name).unlink(missing_ok=True)


def describe_softmax(folder: Path, *, dim: int) -> SoftmaxFacts:
    """Describe a softmax for outputs of `dim` from its settings and the header of its weights."""
    settings = _read_settings(folder, dim=dim)
    is_here = all((folder / name).exists() for name in FILES)
    return SoftmaxFacts(
        kind=settings["kind"],
        num_words=settings["num_words"],
        model=settings["model"],
        store=find_store(folder / WEIGHTS) if is_here else None,
        num_bytes=sum(check_file(folder / name) for name in FILES) if is_here else None,
    )


def read_softmax(folder: Path, *, dim: int) -> SavedSoftmax:
    """Read a softmax for outputs of `dim`; all sizes are checked before any weight is read."""
    settings = _read_settings(folder, dim=dim)
    words = read_list(folder / WORDS)
    try:
        check_words(words, num_words=settings["num_words"])
    except ModelError as error:
        raise ModelError(f"{folder / WORDS}: {error}") from error
    try:
        with without_weights():
            softmax = _build(settings)
    except ValueError as error:
        raise ModelError(f"{folder / SETTINGS}: {error}") from error
    shapes = weight_shapes(softmax) | {LOG_SHARES: (len(words),)}
    is_int8 = settings["format"] == INT8_FORMAT
    tensors = read_tensors(folder / WEIGHTS, shapes, settings=SETTINGS, may_be_int8=is_int8)
    log_shares = tensors.pop(LOG_SHARES)
    if bool((log_shares > 0).any()):
        raise ModelError(f"{folder / WEIGHTS}: a word has a share above 1; download it again")
    softmax.load_state_dict(tensors, strict=True, assign=True)
    return SavedSoftmax(
        softmax=softmax.eval(),
        words=words,
        log_shares=log_shares,
        model=settings["model"],
        run=settings["run"],
    )


def _read_settings(folder: Path, *, dim: int) -> dict[str, Any]:
    """Return the settings, checked, so that a softmax can be built from them."""
    path = folder / SETTINGS
    if not path.exists():
        raise ModelError(
            f"{folder} has parts of a softmax but no {SETTINGS}, because saving was interrupted; "
            "save the model again, or convert it with --no-softmax"
        )
    settings = read_json(path)
    found = settings.get("format")
    if type(found) is not int or found not in (FORMAT, INT8_FORMAT):
        raise ModelError(
            f"{path} has format {found!r:.60}, but this elmore reads {FORMAT} and {INT8_FORMAT}; "
            "update elmore"
        )
    for name, most in (("num_words", MAX_VOCABULARY), ("dim", MAX_DIM)):
        if not is_count(settings.get(name), least=1, most=most):
            raise ModelError(
                f"{path}: {name} is {settings.get(name)!r:.60}, expected an integer from 1 to "
                f"{most}; download the file again"
            )
    if settings["dim"] != dim:
        raise ModelError(
            f"{path}: this softmax reads {settings['dim']} numbers per token, but the model gives "
            f"{dim}; give the softmax that belongs to this model"
        )
    if settings.get("kind") not in ("words", "adaptive"):
        raise ModelError(
            f"{path}: kind is {settings.get('kind')!r:.60}, expected words or adaptive; "
            "update elmore"
        )
    if settings["kind"] == "adaptive":
        _check_cutoffs(settings.get("cutoffs"), num_words=settings["num_words"], path=path)
    for name, kind in (("model", str), ("run", dict)):
        if not isinstance(settings.get(name), kind):
            raise ModelError(f"{path}: {name!r} is missing or damaged; download the file again")
    return settings


def _check_cutoffs(cutoffs: Any, *, num_words: int, path: Path) -> None:
    is_list = isinstance(cutoffs, list) and 1 <= len(cutoffs) <= 100
    if (
        not is_list
        or not all(is_count(cutoff, least=1, most=num_words - 1) for cutoff in cutoffs)
        or sorted(set(cutoffs)) != cutoffs
    ):
        raise ModelError(
            f"{path}: cutoffs are {cutoffs!r:.60}, expected increasing integers from 1 to "
            f"{num_words - 1}; download the file again"
        )


def _build(settings: Mapping[str, Any]) -> Softmax:
    shape = {"num_words": settings["num_words"], "dim": settings["dim"]}
    if settings["kind"] == "words":
        return WordSoftmax(**shape)
    return AdaptiveSoftmax(**shape, cutoffs=settings["cutoffs"])
