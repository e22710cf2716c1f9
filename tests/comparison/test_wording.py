import pytest

from elmore.comparison.wording import clean, format_number, format_signed


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
