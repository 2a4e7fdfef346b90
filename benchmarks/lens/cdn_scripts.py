"""The scripts that BertViz's pages load from a CDN, from npm's registry and then from disk."""

import base64
import hashlib
import io
import tarfile
import urllib.request
from pathlib import Path

from playwright.sync_api import Page, Route

FOLDER = Path(__file__).resolve().parents[2] / ".peers" / "bertviz-scripts"
# BertViz asks for jQuery 2.0.0, which npm does not have; 2.2.4 has the same interface.
PACKAGES = {
    "require.min.js": (
        "requirejs/-/requirejs-2.3.6.tgz",
        "package/require.js",
        "ipEzlWQe6RK3jkzikgCupiTbTvm4S0/CAU5GlgptkN5SO6F3u0UD0K18wy6ErDqiCyP4J4YYe1HuAShvsxePLg==",
    ),
    "d3.min.js": (
        "d3/-/d3-5.7.0.tgz",
        "package/dist/d3.min.js",
        "8KEIfx+dFm8PlbJN9PI0suazrZ41QcaAufsKE9PRcqYPWLngHIyWJZX96n6IQKePGgeSu0l7rtlueSSNq8Zc3g==",
    ),
    "jquery.min.js": (
        "jquery/-/jquery-2.2.4.tgz",
        "package/dist/jquery.min.js",
        "lBHj60ezci2u1v2FqnZIraShGgEXq35qCzMv4lITyHGppTnA13rwR0MgwyNJh9TnDs3aXUvd1xjAotfraMHX/Q==",
    ),
}


def script(name: str) -> Path:
    """Return the file of a script; download it once."""
    path = FOLDER / name
    if not path.exists():
        package, member, checksum = PACKAGES[name]
        with urllib.request.urlopen(f"npm:/{package}", timeout=60) as answer:
            content = answer.read()
        if checksum and base64.b64encode(hashlib.sha512(content).digest()).decode() != checksum:
            raise SystemExit(f"{package} does not have the expected checksum.")
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            found = archive.extractfile(member)
            assert found
            FOLDER.mkdir(parents=True, exist_ok=True)
            path.write_bytes(found.read())
    return path


def answer_from_disk(page: Page) -> None:
    """Answer the page's requests to the CDN."""

    def answer(route: Route) -> None:
        route.fulfill(path=script(route.request.url.rsplit("/", 1)[-1]), content_type="text/javascript")

    page.route("https://cdnjs.cloudflare.com/**", answer)
