"""How a worker hears and answers: a line of JSON each way."""

import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any


def take_over_output() -> Callable[[Mapping[str, Any]], None]:
    """What answers on standard output; what peers print there, as they like, goes to standard error from now on."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def reply(message: Mapping[str, Any]) -> None:
        replies.write(json.dumps(message) + "\n")
        replies.flush()

    return reply


def take_order() -> dict[str, Any]:
    """The first line: what to be, and on which core."""
    order: dict[str, Any] = json.loads(sys.stdin.readline())
    if order["core"] is not None:
        os.sched_setaffinity(0, [order["core"]])
    return order
