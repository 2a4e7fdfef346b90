"""Run an application on this machine: find a free port, listen, stop on Ctrl-C."""

import errno
import ipaddress
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from manyheads.errors import ServeError
from manyheads.messages import _

DEFAULT_PORT = 8877
_N_PORTS = 50  # to try after the one that was asked for


class PortInUseError(ServeError):
    """A port that another process uses, or that needs more rights."""


def is_loopback(host: str) -> bool:
    """Whether a host is this machine alone."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listen_at(host: str, port: int) -> socket.socket:
    """Return a listening socket at this port; raise ServeError if it cannot be used."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio turns Nagle's algorithm off only if the protocol is given; with it, every answer takes 40 ms longer.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(1024)
    except (OSError, OverflowError) as error:
        listener.close()
        if isinstance(error, OSError) and error.errno in (errno.EADDRINUSE, errno.EACCES):
            raise PortInUseError(
                _("Port {port} of {host} is in use or not allowed. Give another --port.", port=port, host=host)
            ) from None
        raise ServeError(
            _(
                "The address {host}:{port} cannot be used ({error}). Give another --host.",
                host=host,
                port=port,
                error=error,
            )
        ) from None
    return listener


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket at this port, or at the next free one."""
    for candidate in range(port, min(port + _N_PORTS, 65_536)):
        with suppress(PortInUseError):
            return listen_at(host, candidate)
    raise ServeError(
        _(
            "No port from {first} to {last} of {host} is free. Give another --port.",
            first=port,
            last=port + _N_PORTS - 1,
            host=host,
        )
    )


def address_of(listener: socket.socket) -> str:
    """Return the URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def run(app: ASGIApp, listener: socket.socket, on_start: Callable[[], None] = lambda: None) -> None:
    """Serve until Ctrl-C or SIGTERM; `on_start` is called when the server answers."""
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=2,
        limit_concurrency=64,
    )
    server = ReportingServer(config, on_start)
    server.run(sockets=[listener])


class ReportingServer(uvicorn.Server):
    """A server that reports when it has started.

    SIGINT stays ignored if the caller ignored it, as a shell does for a job started with `&`.
    """

    def __init__(self, config: uvicorn.Config, on_start: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_start = on_start
        self._ignores_sigint = signal.getsignal(signal.SIGINT) is signal.SIG_IGN

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop, unless the signal is ignored."""
        if sig != signal.SIGINT or not self._ignores_sigint:
            super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then report it."""
        await super().startup(sockets)
        if self.started:
            self._on_start()
