"""Which requests are accepted: a bound on queued tokens and on bytes, checked before parsing.

There is one rule for all requests: a lane accepts a request if it is empty, or if all its tokens
together stay within the bound. So the time that an accepted request waits is bounded, and a request
that is within the limits of its own is always accepted by an idle server.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from elmore.serve.errors import RequestError
from elmore.serve.settings import Limits

SHORT, LONG = "short", "long"
# English text in JSON has about five bytes per token. The estimate decides only before parsing.
BYTES_PER_TOKEN = 5
# Until a speed has been measured.
_TOKENS_PER_SECOND = 5_000.0


@dataclass
class _Load:
    """The tokens in one lane, and how fast it computes."""

    num_tokens: int = 0
    tokens_per_second: float = _TOKENS_PER_SECOND


class Ticket:
    """The place of one request in a lane."""

    def __init__(self, admission: "Admission", *, num_tokens: int) -> None:
        self._admission = admission
        self._lane: str | None = None
        self._num_tokens = 0
        self.move(num_tokens)

    def move(self, num_tokens: int, *, lane: str | None = None) -> str:
        """Count other tokens, now that they are known; return the lane, or refuse the request."""
        self.leave()
        lane = lane or self._admission.choose_lane(num_tokens)
        self._admission.check(num_tokens, lane=lane)
        self._lane, self._num_tokens = lane, num_tokens
        self._admission.loads[lane].num_tokens += num_tokens
        return lane

    def leave(self) -> None:
        """Free the place; calling this again does nothing."""
        if self._lane is not None:
            self._admission.loads[self._lane].num_tokens -= self._num_tokens
            self._lane = None


class Received:
    """The bytes of one body that have arrived."""

    def __init__(self, admission: "Admission") -> None:
        self._admission = admission
        self.num_bytes = 0

    def add(self, num_bytes: int) -> None:
        """Count more bytes, or refuse the body."""
        self._admission.check_size(self.num_bytes + num_bytes, num_counted=self.num_bytes)
        self.num_bytes += num_bytes
        self._admission.num_bytes += num_bytes


class Admission:
    """Counts bytes and tokens, and refuses what is beyond the limits."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.loads = {SHORT: _Load(), LONG: _Load()}
        self.num_bytes = 0

    def choose_lane(self, num_tokens: int) -> str:
        """Return the lane for a request of this size."""
        return LONG if num_tokens >= self.limits.long_tokens else SHORT

    def check(self, num_tokens: int, *, lane: str | None = None) -> None:
        """Refuse a request that would wait too long."""
        load = self.loads[lane or self.choose_lane(num_tokens)]
        if load.num_tokens and load.num_tokens + num_tokens > self.limits.max_queue_tokens:
            seconds = math.ceil(load.num_tokens / load.tokens_per_second)
            raise overloaded(retry_seconds=min(max(seconds, 1), 60))

    def check_size(self, num_bytes: int, *, num_counted: int = 0) -> None:
        """Refuse a body that is too large, or too much at once."""
        if num_bytes > self.limits.max_body_bytes:
            raise RequestError(
                413,
                f"the body has more than {self.limits.max_body_bytes} bytes; split the request, or "
                "raise the server's --max-body-bytes",
                headers={"connection": "close"},
            )
        others = self.num_bytes - num_counted
        if others and others + num_bytes > self.limits.max_bytes_received:
            raise overloaded(retry_seconds=1)

    def estimate_tokens(self, num_bytes: int) -> int:
        """Guess the tokens of a body that has not been parsed."""
        return min(num_bytes // BYTES_PER_TOKEN, self.limits.max_request_tokens)

    def check_arrival(self, num_bytes: int) -> None:
        """Refuse a request of which only the length of the body is known."""
        self.check_size(num_bytes)
        self.check(self.estimate_tokens(num_bytes))

    @contextmanager
    def receiving(self) -> Iterator["Received"]:
        """Count the bytes of a body while it is received."""
        received = Received(self)
        try:
            yield received
        finally:
            self.num_bytes -= received.num_bytes

    def enter(self, num_bytes: int) -> Ticket:
        """Take a place for a body that has arrived, before it is parsed."""
        return Ticket(self, num_tokens=self.estimate_tokens(num_bytes))

    def note_speed(self, lane: str, *, num_tokens: int, seconds: float) -> None:
        """Remember how fast a lane computes, for Retry-After."""
        load = self.loads[lane]
        load.tokens_per_second += 0.2 * (num_tokens / max(seconds, 1e-6) - load.tokens_per_second)


def overloaded(*, retry_seconds: int) -> RequestError:
    """Return the refusal of a request for which there is no room now."""
    return RequestError(
        429,
        f"the server is overloaded; try again in {retry_seconds} s",
        headers={"retry-after": str(retry_seconds)},
    )
