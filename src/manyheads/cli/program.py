"""The name of this program, for the commands that messages suggest."""

import os
import shutil
import sys
from pathlib import Path


def program_name() -> str:
    """Return `manyheads` if the shell finds it, else the path it was started with, as `make` does."""
    started_as = Path(sys.argv[0])
    if shutil.which("manyheads") is not None or started_as.name != "manyheads":
        return "manyheads"
    return os.path.relpath(started_as)
