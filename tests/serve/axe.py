"""Accessibility faults of a page, found by axe-core."""

from functools import cache
from importlib.resources import files
from typing import Any

from playwright.sync_api import Page


@cache
def _source() -> str:
    return files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")


def serious_faults(page: Page) -> list[str]:
    """Return the serious and critical faults, one line each with the elements concerned.

    The page's Content-Security-Policy would refuse a script element; `evaluate` is not subject to it.
    """
    page.evaluate(_source())
    result: dict[str, Any] = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{fault['id']}: {fault['help']}: " + " · ".join(str(node["target"]) for node in fault["nodes"][:4])
        for fault in result["violations"]
        if fault["impact"] in ("serious", "critical")
    ]
