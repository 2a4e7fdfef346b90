"""Times a page in Chromium: until it answers the mouse, and its frames while the mouse moves over it."""

import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from playwright.sync_api import Browser, Error, Page

Point = tuple[float, float]

_RECORD = """() => {
  window.__frames = [];
  const step = (now) => { window.__frames.push(now); window.__recording = requestAnimationFrame(step); };
  window.__recording = requestAnimationFrame(step);
}"""
_STOP = "() => { cancelAnimationFrame(window.__recording); return window.__frames; }"


@dataclass(frozen=True)
class Subject:
    """A page, and how one sees that it is ready."""

    address: str
    ready: str  # JavaScript: true once the first head is drawn
    box: Callable[[Page], dict[str, float]]  # where the mouse goes
    hovered: str  # JavaScript: true once the page shows what is under the mouse
    prepare: Callable[[Page], None] = lambda page: None  # before navigation: routes


def measure(browser: Browser, subject: Subject, *, limit: float, n_moves: int = 120) -> dict[str, Any]:
    """Return the time until the page is interactive and the frames while hovering; or why it failed."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.set_default_timeout(limit * 1000)
    crashes: list[str] = []
    page.on("crash", lambda _: crashes.append("the tab crashed"))
    page.on("pageerror", lambda error: crashes.append(str(error)))
    try:
        subject.prepare(page)
        started = time.perf_counter()
        page.goto(subject.address, wait_until="commit")
        _wait(page, subject.ready, started + limit)
        drawn = time.perf_counter() - started
        box = subject.box(page)
        page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 0.4 * box["height"])
        _wait(page, subject.hovered, started + limit)
        interactive = time.perf_counter() - started
        frames = hover(page, path(box, n_moves))
        heap = page.evaluate("performance.memory ? performance.memory.usedJSHeapSize : null")
    except Error as error:
        reason = crashes[0] if crashes else error.message.splitlines()[0]
        return {"failed": reason.replace("Page.wait_for_function: ", ""), "limit_seconds": limit}
    finally:
        context.close()
    return {"drawn_seconds": drawn, "interactive_seconds": interactive, "heap_bytes": heap, **frames}


def _wait(page: Page, condition: str, deadline: float) -> None:
    """Ask until a condition holds: a strict Content-Security-Policy forbids Playwright's own `wait_for_function`."""
    while not page.evaluate(condition):
        if time.perf_counter() > deadline:
            raise Error("not ready in time")
        time.sleep(0.005)


def path(box: dict[str, float], n_moves: int) -> list[Point]:
    """Return points of a zigzag through a box."""
    points = []
    for move in range(n_moves):
        share = move / n_moves
        x = 0.05 + 0.9 * abs((share * 6) % 2 - 1)
        points.append((box["x"] + x * box["width"], box["y"] + (0.05 + 0.9 * share) * box["height"]))
    return points


def hover(page: Page, points: Iterable[Point]) -> dict[str, Any]:
    """Move the mouse through the points, and return the times of the frames meanwhile."""
    page.evaluate(_RECORD)
    started = time.perf_counter()
    n_moves = 0
    for x, y in points:
        page.mouse.move(x, y)
        n_moves += 1
        if time.perf_counter() - started > 30:
            break
    frames = page.evaluate(_STOP)
    gaps = [after - before for before, after in pairwise(frames)]
    if not gaps:
        return {"frames_per_second": 1 / (time.perf_counter() - started), "n_moves": n_moves}
    slowest = sorted(gaps)[int(0.95 * (len(gaps) - 1))]
    return {
        "frames_per_second": 1000 / statistics.median(gaps),
        "frames_per_second_slowest_twentieth": 1000 / slowest,
        "n_frames": len(gaps),
        "n_moves": n_moves,
    }
