"""How to call this program, for the commands we advise people to type."""

import os
import shutil
import sys
from pathlib import Path


def program_name() -> str:
    """`manyheads` where the shell would find it, else the path it was started by, as `make` starts it."""
    started_as = Path(sys.argv[0])
    if shutil.which("manyheads") is not None or started_as.name != "manyheads":
        return "manyheads"
    return os.path.relpath(started_as)
