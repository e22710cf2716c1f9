"""Warnings show the line of the program that called elmore, however deep they are raised."""

import warnings

import numpy as np
import pytest

import elmore
from elmore.config import VECTORS, read_precision
from elmore.corpus.corpus import open_corpus
from tests.golden.results import FOLDER
from tests.tiny import model


@pytest.mark.parametrize(
    "call",
    [
        lambda: elmore.Elmo(model(), initial_weights=[1.0, 2.0, 3.0]),
        lambda: elmore.ScalarMix(num_layers=2, initial_weights=[1.0, 3.0]),
        lambda: open_corpus(FOLDER / "files" / "corpus"),
        lambda: elmore.word_vectors(["bank", "xyzzy"], text=["The bank."]),
        lambda: read_precision("dtype", "float16", VECTORS),
    ],
)
def test_a_warning_shows_the_line_of_the_call(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    (warning,) = caught
    assert (warning.filename, warning.lineno) == (__file__, call.__code__.co_firstlineno)


def test_other_types_of_numbers_are_no_reason_to_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_precision("dtype", np.float16, VECTORS) == "f16"
