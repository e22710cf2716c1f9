"""A process that keeps one core busy, on demand."""

import os
import signal
import subprocess
import sys
import time
from types import TracebackType
from typing import Self


class BusyCore:
    """Starts paused; ends with the `with` block, or by itself after ten minutes."""

    def __enter__(self) -> Self:
        program = "import time\nend = time.monotonic() + 600\nwhile time.monotonic() < end: pass"
        self._process = subprocess.Popen([sys.executable, "-c", program])
        self.pause()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()

    def pause(self) -> None:
        """Leave the core to others."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Use a core, from now on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        os.kill(self._process.pid, number)
        time.sleep(0.01)  # until the system has scheduled it
