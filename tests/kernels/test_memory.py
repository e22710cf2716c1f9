"""Memory of packed weights belongs to one process."""

import os

import pytest

from elmore.kernels.memory import LARGE_PAGE, allocate
from tests.lm.processes import needs_fork


@needs_fork
@pytest.mark.slow
@pytest.mark.parametrize("num_bytes", [1000, LARGE_PAGE, 2 * LARGE_PAGE + 5])
def test_a_forked_process_does_not_write_into_its_parents_memory(num_bytes) -> None:
    memory = allocate(num_bytes)
    memory[:] = 1
    child = os.fork()
    if not child:
        memory[:] = 2
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert (memory == 1).all()
