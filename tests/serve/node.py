"""Finds a Node.js that runs: the one of Playwright's wheel, or the system's."""

import shutil
import subprocess
from functools import cache

from playwright._impl._driver import compute_driver_executable
from playwright.sync_api import Error

MISSING = "Node.js is not installed (Debian: apt install nodejs)"


@cache
def find_node() -> str | None:
    """Return the path of Node.js. That of Playwright needs libatomic, which a bare system lacks."""
    return next((path for path in (_of_playwright(), shutil.which("node")) if path and _runs(path)), None)


def _of_playwright() -> str | None:
    try:
        return compute_driver_executable()[0]
    except Error:  # installed from its source, which has none
        return None


def _runs(path: str) -> bool:
    try:
        return subprocess.run([path, "--version"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False
