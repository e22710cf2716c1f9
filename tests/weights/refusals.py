"""What every refusal of a file must be."""

from collections.abc import Callable

import pytest

from elmore.errors import ModelError


def assert_refused(load: Callable[[], object], match: str = ".") -> None:
    with pytest.raises(ModelError, match=match) as caught:
        load()
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 800
