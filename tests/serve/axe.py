"""Accessibility faults of a page, found by axe-core."""

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from playwright.sync_api import Page

CONTRAST = ("color-contrast",)  # the rules whose result depends on the theme
_FADED = """() => Promise.allSettled(document.getAnimations()
  .filter((one) => one.effect.getTiming().iterations !== Infinity).map((one) => one.finished))"""


@cache
def _source() -> str:
    return files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")


def serious_faults(page: Page, rules: Sequence[str] = ()) -> list[str]:
    """Return the serious and critical faults, one line each with the elements concerned; of all rules, or of some.

    The page's Content-Security-Policy would refuse a script element; `evaluate` is not subject to it.
    """
    if page.evaluate("typeof axe === 'undefined'"):
        page.evaluate(_source())
    page.evaluate(_FADED)
    options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    result: dict[str, Any] = page.evaluate("(options) => axe.run(document, options)", options)
    return [
        f"{fault['id']}: {fault['help']}: " + " · ".join(str(node["target"]) for node in fault["nodes"][:4])
        for fault in result["violations"]
        if fault["impact"] in ("serious", "critical")
    ]
