"""Start a server and say where it is."""

import sys
from collections.abc import Callable

from elmore.serve.named_sources import name_sources
from elmore.serve.process import bind, find_address, is_loopback, run_process
from elmore.serve.served_models import name_models
from elmore.serve.settings import ServeSettings


def serve(settings: ServeSettings, *, announce: Callable[[str], None] | None = None) -> None:
    """Serve until SIGTERM or Ctrl-C, then finish the accepted requests.

    When the server is ready, `announce` gets its address; by default, it is printed.
    """
    names = [name for name, _ in name_models(settings.models)]
    listener = bind(settings)
    address = find_address(listener)
    if not is_loopback(settings.host):
        _warn(settings)

    name_sources(settings.tasks, what="task")  # a mistake is noticed before models are loaded

    def report(*_: object) -> None:
        if announce is not None:
            announce(address)
            return
        print(f"elmore: serving {', '.join(names)} at {address} (see {address}/docs)", flush=True)

    if settings.workers == 1:
        run_process(settings, listener, on_ready=report)
    else:
        # multiprocessing is not needed for one process.
        from elmore.serve.workers import run_workers  # noqa: PLC0415

        run_workers(settings, listener, on_ready=report)


def _warn(settings: ServeSettings) -> None:
    key = (
        "requests need the API key"
        if settings.api_key
        else "anyone who can reach it can use it; set an API key (ELMORE_API_KEY)"
    )
    print(f"elmore: other machines can reach {settings.host}; {key}", file=sys.stderr)
