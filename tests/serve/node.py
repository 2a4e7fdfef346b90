"""Finds a Node.js that runs: the one of Playwright's wheel, or the system's."""

import shutil
import subprocess
from functools import cache

from playwright._impl._driver import compute_driver_executable

MISSING = "Node.js is not installed (Debian: apt install nodejs)"


@cache
def find_node() -> str | None:
    """Return the path of Node.js. That of Playwright needs libatomic, which a bare system lacks."""
    return next((path for path in (compute_driver_executable()[0], shutil.which("node")) if path and _runs(path)), None)


def _runs(path: str) -> bool:
    try:
        return subprocess.run([path, "--version"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False
