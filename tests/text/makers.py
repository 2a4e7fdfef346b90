"""What the tests of readers share: files to write, and the one line that refuses them."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from manyheads.errors import DataError

Write = Callable[[str, str | bytes], Path]


def refuses(message: str):  # type: ignore[no-untyped-def]
    """The whole error, one line: a star stands for the folder."""
    return pytest.raises(DataError, match="^" + re.escape(message).replace(r"\*", r"[^\n]*") + "$")
