"""Finds Debian's Chromium, or installs it where that is welcome, and starts it for Playwright."""

import os
import shutil
import subprocess
from pathlib import Path

from playwright.sync_api import Browser, Playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MISSING = "Chromium is not installed (Debian: apt install chromium)"
_OPTIONS = (
    "--no-sandbox",  # which root cannot use
    "--disable-dev-shm-usage",  # /dev/shm is small or missing in a container
    "--disable-gpu",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # nothing but the loopback address can be reached
)


def find_chromium() -> str | None:
    """Return the path of an installed browser."""
    return next((path for path in map(shutil.which, _NAMES) if path), None)


def install_chromium() -> str | None:
    """Install the browser if this is CI with root and apt; elsewhere nobody asked for it."""
    if os.environ.get("CI", "") in ("", "0", "false") or os.geteuid() != 0 or not shutil.which("apt-get"):
        return None
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for words in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", "chromium"]):
        done = subprocess.run(["apt-get", *words], env=environment, capture_output=True, timeout=600, check=False)
        if done.returncode:
            return None
    return find_chromium()


def start(playwright: Playwright, path: str, home: Path) -> Browser:
    """Start the browser."""
    return playwright.chromium.launch(executable_path=path, args=_OPTIONS, env={**os.environ, "HOME": str(home)})
