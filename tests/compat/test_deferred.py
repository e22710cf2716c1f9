import pytest

from elmore.compat.deferred import Deferred, Recurrent


def test_a_result_is_computed_once_per_run():
    calls = []
    value = Deferred(lambda: None)
    squared = Deferred(lambda number: calls.append(number) or [number**2], value)
    known = {value: 3}
    assert squared.compute(known, {}) == [9]
    assert squared[0].compute(known, {}) == 9
    assert calls == [3]
    with pytest.raises(TypeError, match="run it in a session"):
        list(squared)


def test_a_state_is_kept_from_run_to_run():
    value = Deferred(lambda: None)
    total = Recurrent(lambda number, state: (number + (state or 0),) * 2, value)
    states = {}
    assert [total.compute({value: number}, states) for number in (1, 2, 3)] == [1, 3, 6]
    assert total.compute({value: 1}, {}) == 1
