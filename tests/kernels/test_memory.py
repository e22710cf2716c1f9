"""Memory of packed weights belongs to one process."""

import os
import sys
import textwrap

import pytest

from elmore.kernels.memory import LARGE_PAGE, allocate
from tests.kernels.processes import run_python
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


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="a setting of glibc")
def test_freed_memory_is_used_again_without_new_pages() -> None:
    """Every new page is a fault; 40 blocks of 64 MB have 16,384 pages each."""
    program = """
        import ctypes, resource
        from elmore.kernels.memory import keep_freed_memory
        if not hasattr(ctypes.CDLL(None), "mallopt"):
            print(0)
            raise SystemExit
        import numpy as np
        def count_faults():
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
            for _ in range(40):
                np.zeros(16 << 20, np.uint8)
                np.empty(64 << 20, np.uint8)[::4096] = 1
            return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
        keep_freed_memory()
        count_faults()
        print(count_faults())
    """
    made = run_python(textwrap.dedent(program))
    assert int(made.stdout) < 20_000, made.stderr
