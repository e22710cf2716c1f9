"""Start a server and say where it is."""

import sys

from elmore.serve.process import bind, find_address, is_loopback, run_process
from elmore.serve.served_models import name_models
from elmore.serve.settings import ServeSettings


def serve(settings: ServeSettings) -> None:
    """Serve until SIGTERM or Ctrl-C, then finish the accepted requests."""
    names = [name for name, _ in name_models(settings.models)]
    listener = bind(settings)
    address = find_address(listener)
    if not is_loopback(settings.host):
        _warn(settings)

    def announce(*_: object) -> None:
        print(f"elmore: serving {', '.join(names)} at {address} (see {address}/docs)", flush=True)

    if settings.workers == 1:
        run_process(settings, listener, on_ready=announce)
    else:
        # multiprocessing is not needed for one process.
        from elmore.serve.workers import run_workers  # noqa: PLC0415

        run_workers(settings, listener, on_ready=announce)


def _warn(settings: ServeSettings) -> None:
    key = (
        "requests need the API key"
        if settings.api_key
        else "anyone who can reach it can use it; set an API key (ELMORE_API_KEY)"
    )
    print(f"elmore: other machines can reach {settings.host}; {key}", file=sys.stderr)
