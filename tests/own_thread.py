"""`in_own_thread`: run a test or a fixture in a thread of its own.

Playwright keeps an event loop running in the main thread of a test process, in which asyncio.run then fails, and its
greenlets confuse the recursion counter of Python 3.11's compiler.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def in_own_thread(function: Callable[P, T]) -> Callable[P, T]:
    """Return a function with the same parameters that runs in a new thread."""

    @wraps(function)
    def run(*arguments: P.args, **named: P.kwargs) -> T:
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(function, *arguments, **named).result()

    return run
