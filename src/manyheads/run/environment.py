"""What the bits of trained weights depend on beside the recipe: the number of threads and the version of PyTorch.

A matrix product adds its terms in another order if it is split among another number of threads. A run therefore stores
the number it starts with, and resumes with it. With another number of processes the order differs anyway, so the run
then takes the number of threads that suits them.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

import torch

from manyheads.bounded_files import read_json_object
from manyheads.cores import count_cores
from manyheads.errors import DataError
from manyheads.run.run_folder import RunFolder
from manyheads.storage import atomic_write

_MAX_THREADS = 10_000  # more than any machine has cores


@dataclass(frozen=True)
class Environment:
    """The environment that a run started in, as environment.json stores it."""

    threads: int
    torch: str  # the version of PyTorch
    processes: int = 1

    @classmethod
    def here(cls, n_processes: int = 1) -> "Environment":
        """The environment of this process."""
        return cls(torch.get_num_threads(), torch.__version__, n_processes)

    @property
    def is_short_of_cores(self) -> bool:
        """Whether there are more threads than cores: training is slower, and libraries may use fewer threads."""
        return self.threads > count_cores()


@contextmanager
def original_environment(folder: RunFolder, n_processes: int = 1) -> Iterator[Environment]:
    """Compute with as many threads as the run started with; store the environment of a run that is not started yet."""
    before = torch.get_num_threads()
    environment = _read(folder) if folder.is_started else None
    if environment is None or environment.processes != n_processes:
        environment = Environment.here(n_processes)
    atomic_write(folder.environment_file, json.dumps(asdict(environment)).encode())
    torch.set_num_threads(environment.threads)
    try:
        yield environment
    finally:
        torch.set_num_threads(before)


def _read(folder: RunFolder) -> Environment | None:
    """Return the stored environment, or None if it is missing (as in older runs) or damaged."""
    try:
        data = read_json_object(folder.environment_file, DataError)
        environment = Environment(int(data["threads"]), str(data["torch"]), int(data.get("processes", 1)))
    except (DataError, ValueError, KeyError, TypeError, OverflowError):
        return None
    return environment if 0 < environment.threads <= _MAX_THREADS else None
