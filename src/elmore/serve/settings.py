"""What a server serves, and its limits."""

from dataclasses import dataclass, field

# A request counts as many tokens as the biLM reads: every sentence has a marker at each end.
NUM_MARKERS = 2


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Bounds on what clients may ask for; beyond them, requests are refused, never shortened."""

    max_body_bytes: int = 2_000_000
    max_request_tokens: int = 20_000
    max_answer_bytes: int = 100_000_000
    max_queue_tokens: int = 20_000
    """Tokens waiting or being computed, per lane; more are refused with status 429."""
    max_bytes_received: int = 64_000_000
    """Bytes of all bodies that are being received."""
    long_tokens: int = 512
    """Requests of this many tokens are computed in the lane for long requests."""
    batch_tokens: int = 2048
    """Tokens of different requests that are computed together; 1 turns batching off."""
    receive_seconds: float = 30.0
    """Time for receiving a body, and for sending each part of an answer."""


@dataclass(frozen=True, kw_only=True)
class ServeSettings:
    """All settings of `elmore serve`."""

    models: tuple[str, ...] = ()
    """Models as for `elmore.load`, or NAME=MODEL; none means the model shipped with elmore."""
    index: str | None = None
    """The folder of an index for /uses, /map and others; None means elmore's example."""
    tasks: tuple[str, ...] = ()
    """Folders of trained tasks for /predict, or NAME=FOLDER."""
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    api_key: str | None = field(default=None, repr=False)
    cors_origins: tuple[str, ...] = ()
    has_access_log: bool = True
    grace_seconds: float = 30.0
    """Time for finishing accepted requests after SIGTERM."""
    device: str = "cpu"
    precision: str = "f32"
    language: str = "en"
    layers: str = "average"
    """The layers of /v1/embeddings, /embed and /embed_all."""
    max_sentence_tokens: int = 10_000
    limits: Limits = field(default_factory=Limits)
