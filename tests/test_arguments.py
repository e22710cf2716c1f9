"""Calls with wrong arguments say how the function is called."""

import inspect

import pytest

from elmore.arguments import explain_calls
from elmore.errors import ConfigError


@explain_calls({"speed": "use pace="})
def walk(way: str, *, pace: int = 1) -> str:
    """Walk."""
    return way * pace if pace else len(pace)  # type: ignore[arg-type]


def test_a_right_call_is_the_call_of_the_function():
    assert walk("a", pace=2) == "aa"
    assert walk.__doc__ == "Walk."
    assert list(inspect.signature(walk).parameters) == ["way", "pace"]


@pytest.mark.parametrize(
    ("arguments", "named", "message"),
    [
        (("a",), {"speed": 2}, "walk has no argument 'speed'; use pace="),
        (("a",), {"pase": 2}, "walk has no argument 'pase'; did you mean 'pace'?"),
        (("a",), {"x": 2}, "walk has no argument 'x'; it has: way, pace"),
        ((), {}, "walk: missing a required argument: 'way'; it takes walk(way), and by name: pace"),
        (
            ("a", 2),
            {},
            "walk: too many positional arguments; it takes walk(way), and by name: pace",
        ),
    ],
)
def test_a_wrong_call_is_explained(arguments, named, message):
    with pytest.raises(ConfigError) as caught:
        walk(*arguments, **named)
    assert str(caught.value) == message


def test_an_error_inside_the_function_is_left_alone():
    with pytest.raises(TypeError, match="has no len"):
        walk("a", pace=0)
