"""Helpers for the tests of readers."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads.errors import DataError

Write = Callable[[str, str | bytes], Path]


def refuses(message: str):  # type: ignore[no-untyped-def]
    """Expect a DataError with exactly this one-line message; `*` matches any text."""
    return pytest.raises(DataError, match="^" + re.escape(message).replace(r"\*", r"[^\n]*") + "$")
