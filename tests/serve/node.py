"""Finds a Node.js that starts: the one inside Playwright's wheel, which drives the browser too, or an installed one."""

import shutil
import subprocess
from functools import cache

from playwright._impl._driver import compute_driver_executable

MISSING = "Playwright's Node.js does not start. Install the library that it needs: apt-get install libatomic1"


@cache
def starts(node: str) -> bool:
    """Return whether a Node.js starts: a minimal Debian lacks a library that Playwright's needs."""
    return subprocess.run([node, "--version"], capture_output=True, check=False).returncode == 0


def playwright_node() -> str:
    """Return the path of Playwright's Node.js."""
    return str(compute_driver_executable()[0])


def find_node() -> str | None:
    """Return the path of a Node.js that starts."""
    return next((node for node in (playwright_node(), shutil.which("node")) if node and starts(node)), None)
