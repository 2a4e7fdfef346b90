"""Draw docs/pictures/lens/: the lens page in Chromium, on the bundles of the quickstarts.

python docs/draw_lens.py [NAME…]

It needs `make quickstart` and its other tasks: TASK=tag, TASK=generate, and TASK=classify with ARGS="--language zh".
"""

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from serve import chromium  # noqa: E402
from serve.lens_pages import LensPage, new_context, serving  # noqa: E402

FOLDER = ROOT / "docs" / "pictures" / "lens"
TEXT = "The old teacher did not buy the red book yesterday."
HEIGHT = {1280: 900, 390: 844}
SURVEY = 180_000  # milliseconds


def wait_for_table(page: Page) -> None:
    page.locator("table").first.wait_for(timeout=SURVEY)


def wait_for_roles(page: Page) -> None:
    page.locator(".region-overview :text('alignment'), .region-overview :text('对齐')").first.wait_for(timeout=SURVEY)


def scroll_to(selector: str) -> Callable[[Page], None]:
    """Return a step that brings an element to the top of the window."""
    return lambda page: page.locator(selector).first.evaluate("(node) => node.scrollIntoView({ block: 'start' })")


def hover_matrix(page: Page) -> None:
    matrix = page.locator(".part-arcs canvas.over").first
    matrix.evaluate("(node) => node.closest('.region').scrollIntoView({ block: 'start' })")
    matrix.focus()
    for _ in range(4):
        page.keyboard.press("ArrowRight")


@dataclass(frozen=True)
class Shot:
    """A picture: the bundle, the state of the address, and what to do before."""

    lang: str = "en"
    theme: str = "light"
    width: int = 1280
    run: str = "quickstart"
    text: str = TEXT
    state: dict[str, object] = field(default_factory=dict)
    step: Callable[[Page], None] = lambda page: None
    height: int | None = None


TEACHER = "The teacher did not buy the red book."
OFF: dict[str, object] = {"off": "decoder.1.cross/3", "attention": "decoder.1.cross", "head": 2}

SHOTS = {
    "readme": Shot(text=TEACHER, state=OFF, step=wait_for_roles, height=1560),
    "readme-zh": Shot("zh", text=TEACHER, state=OFF, step=wait_for_roles, height=1560),
    "text": Shot(),
    "text-zh-dark": Shot("zh", "dark"),
    "text-narrow": Shot(width=390),
    "text-zh-dark-narrow": Shot("zh", "dark", 390, step=scroll_to(".region-head")),
    "head-hover": Shot(step=hover_matrix),
    "ablation": Shot(theme="dark", state={"off": "decoder.1.cross/0,decoder.1.cross/1"}),
    "numbers-zh": Shot("zh", state={"pins": 4}, step=scroll_to(".region-numbers")),
    "heads": Shot(state={"page": "heads"}, step=wait_for_table),
    "heads-zh-dark-narrow": Shot("zh", "dark", 390, state={"page": "heads"}, step=wait_for_table),
    "head-page-zh": Shot("zh", state={"page": "head", "attention": "decoder.1.cross"}, step=wait_for_table),
    "compare-dark": Shot(theme="dark", state={"page": "compare", "text2": "Two cats are sleeping in the garden."}),
    "tour-zh": Shot("zh", state={"page": "tour", "attention": "encoder.0.self", "tour": 6}),
    "tour-dark-narrow": Shot("en", "dark", 390, state={"page": "tour", "attention": "encoder.0.self", "tour": 3}),
    "classes-zh": Shot("zh", run="quickstart-classify-zh", text="这家餐厅的菜很好吃，但是服务太慢了。"),
    "entities-dark": Shot(theme="dark", run="quickstart-tag", text="Anna Weber met Daniel in Paris on Monday."),
    "generation": Shot(run="quickstart-generate", text="This morning Nina lost her phone at the", state={"at": 12}),
}


def draw(browser: Browser, address: str, name: str, shot: Shot) -> None:
    """Draw one picture as a small PNG."""
    size = {"width": shot.width, "height": shot.height or HEIGHT[shot.width]}
    lens = LensPage(new_context(browser, viewport=size, color_scheme=shot.theme, device_scale_factor=1.5), address)
    page = lens.open(shot.text, lang=shot.lang, theme=shot.theme, **shot.state)
    page.wait_for_timeout(3000)
    shot.step(page)
    page.wait_for_timeout(1500)
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    small = picture.quantize(96, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    small.save(FOLDER / f"{name}.png", optimize=True)
    print(f"{name}: {(FOLDER / f'{name}.png').stat().st_size / 1000:.0f} kB", lens.problems or "")
    lens.context.close()


def main() -> None:
    """Draw the pictures that were named, or all of them."""
    wanted = sys.argv[1:] or list(SHOTS)
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = chromium.find_chromium()
    if path is None:
        raise SystemExit(chromium.MISSING)
    with sync_playwright() as playwright:
        browser = chromium.start(playwright, path, Path.home())
        for run in dict.fromkeys(SHOTS[name].run for name in wanted):
            with serving(ROOT / "runs" / run / "bundle") as address:
                for name in wanted:
                    if SHOTS[name].run == run:
                        draw(browser, address, name, SHOTS[name])
        browser.close()


if __name__ == "__main__":
    main()
