"""One server process: bind, load in the background, serve, drain on SIGTERM."""

import asyncio
import ipaddress
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

import uvicorn

from elmore import ElmoreError
from elmore.serve.app import make_app
from elmore.serve.garbage import collect_when_idle, spare_loaded_objects
from elmore.serve.http_protocol import BoundedProtocol
from elmore.serve.page_files import PAGE
from elmore.serve.service import Phase, Service
from elmore.serve.settings import ServeSettings

_KEEP_ALIVE_SECONDS = 65  # longer than the proxies in front of a server wait
_BACKLOG = 2048


class DrainingServer(uvicorn.Server):
    """A uvicorn server that refuses new work after a signal, and then ends with status 0."""

    def __init__(self, config: uvicorn.Config, *, service: Service) -> None:
        super().__init__(config)
        self._service = service

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Finish accepted requests; a second SIGINT ends at once."""
        self._service.phase = Phase.DRAINING
        super().handle_exit(sig, frame)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals; unlike uvicorn, do not raise them again afterwards."""
        handlers = {number: signal.signal(number, self.handle_exit) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)


_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def bind(settings: ServeSettings) -> socket.socket:
    """Return a listening socket, so that a port in use is noticed before models are loaded."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family=family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise ElmoreError(
            f"cannot listen on {settings.host}:{settings.port} ({reason}); choose another --port "
            "or --host"
        ) from None
    listener.set_inheritable(True)
    return listener


def find_address(listener: socket.socket) -> str:
    """Return the URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def run_process(
    settings: ServeSettings, listener: socket.socket, *, on_ready: Callable[[Service], None]
) -> None:
    """Serve until a signal comes; raise the error if a model cannot be loaded."""
    _log_to_stderr()
    service = Service(settings)
    failures: list[BaseException] = []
    tasks = []

    async def load() -> None:
        try:
            await asyncio.to_thread(service.load)
            spare_loaded_objects()
            on_ready(service)
        except Exception as error:
            failures.append(error)
            server.should_exit = True
        await collect_when_idle(lambda: service.is_idle)

    async def start() -> None:
        tasks.append(asyncio.create_task(load()))

    config = uvicorn.Config(
        make_app(service, static_folder=PAGE, on_start=start),
        http=BoundedProtocol,
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=_BACKLOG,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=max(1, int(settings.grace_seconds)),
    )
    server = DrainingServer(config, service=service)
    with suppress(asyncio.CancelledError):
        server.run(sockets=[listener])
    if failures:
        raise failures[0]
    if not service.is_idle:
        # The grace period is over, but a thread still computes, and Python would wait for it.
        logging.getLogger(__name__).warning("stopped before all accepted requests were finished")
        sys.stderr.flush()
        os._exit(0)


def _log_to_stderr() -> None:
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(name)s: %(message)s"
    )
    logging.getLogger("elmore.serve").setLevel(logging.INFO)
