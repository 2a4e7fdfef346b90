"""Communication of a worker: it reads and writes lines of JSON."""

import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any


def take_over_output() -> Callable[[Mapping[str, Any]], None]:
    """Return a function that answers on standard output; anything else printed there goes to standard error."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def reply(message: Mapping[str, Any]) -> None:
        replies.write(json.dumps(message) + "\n")
        replies.flush()

    return reply


def take_order() -> dict[str, Any]:
    """Read the first message, which configures the worker, and pin the process to its core."""
    order: dict[str, Any] = json.loads(sys.stdin.readline())
    if order["core"] is not None:
        os.sched_setaffinity(0, [order["core"]])
    return order
