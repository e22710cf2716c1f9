import pytest

from elmore.comparison.wording import (
    MAX_LABEL_CHARS,
    clean,
    describe,
    format_number,
    format_signed,
)


@pytest.mark.parametrize(
    ("name", "cleaned"),
    [
        ("a  b", "a  b"),
        ("a\n\tb ", "a b"),
        ("\x00\udc80\uffff", "\ufffd\ufffd\ufffd"),
        ("她 <b> $x$ é", "她 <b> $x$ é"),
    ],
)
def test_a_name_keeps_what_can_be_shown(name, cleaned):
    assert clean(name) == cleaned


def test_nothing_has_no_minus():
    assert (format_number(-0.0), format_signed(-0.004)) == ("0.00", "+0.00")


def test_variants_have_different_words():
    names = ["without", "input", "output", "both", "top", "average", "finetuned", "own"]
    for words in ("name", "label", "after_with"):
        assert len({getattr(describe(name), words) for name in names}) == len(names)


def test_a_variant_that_is_not_known_keeps_its_name():
    assert describe("own\nuse").name == "own use"
    long = describe("x" * 100)
    assert (len(long.name), len(long.label)) == (100, MAX_LABEL_CHARS)


def test_shares_are_learned_unless_the_variant_is_known_to_fix_them():
    fixed = [
        name for name in ("input", "top", "average", "own") if not describe(name).learns_shares
    ]
    assert fixed == ["top", "average"]
