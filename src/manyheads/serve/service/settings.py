"""`ServeSettings`: addresses, limits and keys of the HTTP service."""

from dataclasses import dataclass, field
from pathlib import Path

from manyheads.cores import count_cores

DEFAULT_PORT = 8876


@dataclass(frozen=True, kw_only=True)
class ServeSettings:
    """How to serve. Sizes are per request unless stated otherwise."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    workers: int = field(default_factory=count_cores)  # processes with one thread each
    keys: Path | None = None  # file of API keys; default: the environment variable MANYHEADS_API_KEYS
    rate: float | None = None  # requests per minute and key, or per client address without keys; default: any number;
    # one with much text counts as several, see `Access.charge`
    allowed_hosts: tuple[str, ...] = ()  # names in the Host header besides those of the loopback interface
    cors_origins: tuple[str, ...] = ()  # web sites whose pages may use the API; default: none
    share_examples: bool = False  # whether visitors may see rows of the owner's data: see `private_data`
    proxies: tuple[str, ...] = ()  # addresses whose X-Forwarded-For header names the client; default: none

    max_body: int = 1_000_000  # bytes
    max_texts: int = 1000
    max_text: int = 20_000  # characters of one text
    max_beam: int = 32
    max_new_tokens: int = 1024
    timeout: float = 30.0  # seconds from the arrival of a request until its answer
    read_timeout: float = 10.0  # seconds in which the headers, and then the body, must arrive
    write_timeout: float = 10.0  # seconds in which a client must read 64 KB of its answer, or all of it
    drain: float = 30.0  # seconds that requests under way have after SIGTERM

    max_requests: int = 256  # under way at once; with more, the wait would only grow
    queue_texts: int = 2000  # texts of all requests that may wait
    queue_characters: int = 2_000_000
    batch_texts: int = 32  # texts that a worker answers at once; more are hardly faster on a CPU, and others wait
    batch_seconds: float = 0.5  # that a batch is expected to take at most
    max_streams: int = 32  # at once; a client may have as many as are left for others
    max_connections: int = 1000
