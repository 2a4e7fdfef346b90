"""What the bits of trained weights depend on beside the recipe: the number of threads and the version of PyTorch.

A matrix product adds its terms in another order if it is split among another number of threads. A run therefore stores
the number it starts with, and resumes with it.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

import torch

from manyheads.bounded_files import read_json
from manyheads.errors import DataError
from manyheads.model.device import count_cores
from manyheads.run.run_folder import RunFolder
from manyheads.storage import atomic_write

_MAX_THREADS = 10_000  # more than any machine has cores


@dataclass(frozen=True)
class Environment:
    """The environment that a run started in, as environment.json stores it."""

    threads: int
    torch: str  # the version of PyTorch

    @classmethod
    def here(cls) -> "Environment":
        """The environment of this process."""
        return cls(torch.get_num_threads(), torch.__version__)

    @property
    def is_short_of_cores(self) -> bool:
        """Whether there are more threads than cores: training is slower, and libraries may use fewer threads."""
        return self.threads > count_cores()


@contextmanager
def original_environment(folder: RunFolder) -> Iterator[Environment]:
    """Compute with as many threads as the run started with; store the environment of a run that is not started yet."""
    before = torch.get_num_threads()
    environment = (_read(folder) if folder.is_started else None) or Environment.here()
    atomic_write(folder.environment_file, json.dumps(asdict(environment)).encode())
    torch.set_num_threads(environment.threads)
    try:
        yield environment
    finally:
        torch.set_num_threads(before)


def _read(folder: RunFolder) -> Environment | None:
    """Return the stored environment, or None if it is missing (as in older runs) or damaged."""
    try:
        data = read_json(folder.environment_file, DataError)
        environment = Environment(int(data["threads"]), str(data["torch"]))
    except (DataError, ValueError, KeyError, TypeError, OverflowError):
        return None
    return environment if 0 < environment.threads <= _MAX_THREADS else None
