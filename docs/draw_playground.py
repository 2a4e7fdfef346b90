"""Draw docs/pictures/playground/: the page of `manyheads serve` in Chromium.

python docs/draw_playground.py [BUNDLES]

BUNDLES is a folder with the bundles translate (English to Chinese), classify, tag and language (English). The default
is runs/, with the names that `make quickstart` and its other tasks give (TASK=classify, TASK=tag, TASK=generate).
"""

import io
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from serve import chromium  # noqa: E402
from serve.lens_pages import new_context  # noqa: E402
from serve.playground_pages import PlayPage  # noqa: E402
from serve.service_process import serving_process  # noqa: E402

FOLDER = ROOT / "docs" / "pictures" / "playground"
QUICKSTARTS = {
    "translate": "quickstart/bundle",
    "classify": "quickstart-classify/bundle",
    "tag": "quickstart-tag/bundle",
    "language": "quickstart-generate/bundle",
}


def point_at_a_word(page: Page) -> None:
    page.locator(".play-words .play-word").nth(2).hover()


def fill_in_the_glossary(page: Page) -> None:
    page.locator("summary").first.click()
    page.locator(".play-glossary .play-acts button").first.click()
    page.locator(".play-term input").first.fill("garden")
    page.locator(".play-term input").last.fill("公园")
    page.locator(".play-words", has_text="公园").wait_for()
    page.evaluate("document.activeElement.blur()")
    point_at_a_word(page)


def generate(page: Page) -> None:
    page.locator(".play-in .primary:visible").click()


def do_nothing(page: Page) -> None:
    pass


@dataclass(frozen=True)
class Shot:
    """A picture: the bundle, a text, and what to do with the page."""

    bundle: str
    text: str
    lang: str = "en"
    theme: str = "light"
    size: tuple[int, int] = (1280, 900)
    step: Callable[[Page], None] = do_nothing


SHOTS = {
    "translate": Shot(
        "translate", "The teacher did not buy the red book in the garden.", step=fill_in_the_glossary, size=(1280, 1060)
    ),
    "translate-zh-dark-narrow": Shot(
        "translate", "Two cats are sleeping in the garden.", "zh", "dark", (390, 844), point_at_a_word
    ),
    "entities-dark": Shot("tag", "Tom and Anna gave Daniel the blue umbrella.", theme="dark", size=(1280, 760)),
    "generation-zh": Shot("language", "This morning Nina lost her phone at the", "zh", step=generate, size=(1280, 860)),
}


def draw(browser: Browser, address: str, name: str, shot: Shot) -> None:
    """Draw one picture as a small PNG."""
    width, height = shot.size
    size = {"width": width, "height": height}
    playground = PlayPage(
        new_context(browser, viewport=size, color_scheme=shot.theme, device_scale_factor=1.5), address
    )
    page = playground.start(shot.bundle, lang=shot.lang)
    playground.field.fill(shot.text)
    page.wait_for_timeout(2000)
    shot.step(page)
    page.locator(".play-latency:not(:empty)").wait_for()
    page.wait_for_timeout(1000)
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    small = picture.quantize(128, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    small.save(FOLDER / f"{name}.png", optimize=True)
    print(f"{name}: {(FOLDER / f'{name}.png').stat().st_size / 1000:.0f} kB", playground.problems or "")
    playground.context.close()


def main() -> None:
    """Draw all pictures."""
    path = chromium.find_chromium()
    if path is None:
        raise SystemExit(chromium.MISSING)
    if len(sys.argv) > 1:
        bundles = {name: Path(sys.argv[1]) / name for name in QUICKSTARTS}
    else:
        bundles = {name: ROOT / "runs" / folder for name, folder in QUICKSTARTS.items()}
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        named = [f"{name}={bundle}" for name, bundle in bundles.items()]
        with serving_process(*named, log=Path(folder) / "log") as service:
            browser = chromium.start(playwright, path, Path.home())
            for name, shot in SHOTS.items():
                draw(browser, service.address, name, shot)
            browser.close()


if __name__ == "__main__":
    main()
