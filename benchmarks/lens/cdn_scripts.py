"""The scripts that BertViz's pages load from a CDN, installed with npm and then answered from disk."""

import shutil
import subprocess
from pathlib import Path

from playwright.sync_api import Page, Route

FOLDER = Path(__file__).resolve().parents[2] / ".peers" / "bertviz-scripts"
# BertViz asks for jQuery 2.0.0, which npm does not have; 2.2.4 has the same interface.
PACKAGES = {
    "require.min.js": ("requirejs@2.3.6", "requirejs/require.js"),
    "d3.min.js": ("d3@5.7.0", "d3/dist/d3.min.js"),
    "jquery.min.js": ("jquery@2.2.4", "jquery/dist/jquery.min.js"),
}


def script(name: str) -> Path:
    """Return the file of a script; install its package once."""
    package, member = PACKAGES[name]
    path = FOLDER / "node_modules" / member
    if not path.exists():
        npm = shutil.which("npm")
        if npm is None:
            raise SystemExit("BertViz's scripts come from npm, which is not installed.")
        FOLDER.mkdir(parents=True, exist_ok=True)
        subprocess.run([npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", FOLDER, package], check=True)
    return path


def answer_from_disk(page: Page) -> None:
    """Answer the page's requests to the CDN."""

    def answer(route: Route) -> None:
        route.fulfill(path=script(route.request.url.rsplit("/", 1)[-1]), content_type="text/javascript")

    page.route("https://cdnjs.cloudflare.com/**", answer)
