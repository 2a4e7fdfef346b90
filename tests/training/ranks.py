"""Several processes that train together, forked from one that has imported everything."""

import multiprocessing
import os
import socket
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from manyheads.training import ProcessGroup


def run_ranks(
    n: int,
    work: Callable[..., Any],
    *arguments: Any,
    absent: int = 0,
    stopped: int = 0,
    first_stopped: bool = False,
    timeout: float = 60,
    patience: float = 120,
) -> list[Any]:
    """Call work(group, *arguments) in n processes; return its results by rank, or the exit code of one that died.

    The last `absent` processes are not started; the last `stopped` ones, or the first, never answer.
    """
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        [
            "manyheads.run",
            "manyheads.training.gradients",
            "torch.distributed.fsdp",
            "torch._dynamo",
            "torch.distributed.tensor",
        ]
    )
    started = []
    for rank in range(n - absent):
        here, there = context.Pipe(duplex=False)
        environ = {
            "RANK": rank, "WORLD_SIZE": n, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
            "MANYHEADS_TIMEOUT": timeout, "GLOO_SOCKET_IFNAME": "lo",
        }  # fmt: skip
        process = context.Process(target=_work, args=(there, environ, work, arguments))
        process.start()
        there.close()
        started.append((process, here))
    results: list[Any] = []
    for rank, (process, here) in enumerate(started):
        try:
            is_awaited = rank < n - stopped and not (first_stopped and rank == 0)
            results.append(here.recv() if is_awaited and here.poll(patience) else None)
        except EOFError:
            process.join(10)
            results.append(process.exitcode)
    for process, _ in started:
        process.kill()
        process.join()
    return results


def _work(there: Connection, environ: dict[str, object], work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    import torch

    torch.set_num_threads(1)
    os.environ.update({name: str(value) for name, value in environ.items()})
    try:
        there.send(work(ProcessGroup.join(), *arguments))
    except Exception as error:
        there.send(error)
    os._exit(0)
