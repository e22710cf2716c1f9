import threading
import time

from benchmarks.python_share import StageClock


def burn(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_time_goes_to_the_innermost_stage_of_its_own_thread():
    clock = StageClock()
    inner = clock.wrap("inner", lambda: burn(0.02))

    def run_outer() -> None:
        inner()
        burn(0.01)

    thread = threading.Thread(target=clock.wrap("thread", lambda: burn(0.03)))
    thread.start()
    clock.wrap("outer", run_outer)()
    thread.join()
    found = {stage: clock.seconds[stage] for stage in ("outer", "inner", "thread")}
    wanted = {"outer": 0.01, "inner": 0.02, "thread": 0.03}
    assert all(wanted[stage] <= found[stage] < wanted[stage] + 0.005 for stage in wanted)
