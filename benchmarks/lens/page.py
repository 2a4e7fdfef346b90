"""The lens page against BertViz: size, time until it answers the mouse, frames per second while hovering.

    make bench-lens                            12 layers × 12 heads × 512 tokens, and 64 tokens
    make bench-lens ARGS="--tokens 64"         only that length
    make bench-lens ARGS="--long 2000"         also a text of 2,000 tokens on our page

Both show the same attention of the same weights in the same Chromium, in turns, and medians are compared. Our page is
measured twice: served by `manyheads lens` (the first visit computes the trace; later visits have it), and as one file.
BertViz loads its scripts from a CDN; here they are answered from disk, so that no network is measured. A page that is
not ready within the limit is stopped and recorded as such.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import torch
from browser_timing import Subject, measure
from cdn_scripts import answer_from_disk
from large_bundle import attention_of, make_bundle, text_of
from playwright.sync_api import Browser, Page, sync_playwright

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "speed"))

from frame import ROOT, stamp, store  # noqa: E402
from peers import prepare  # noqa: E402

RESULT = HERE / "page.json"
PEER_PAGES = ("head_view", "model_view", "head_view_one_layer")
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
IS_DRAWN = (
    "!!document.querySelector('.part-matrix canvas.over[aria-label]') && !document.querySelector('.head-body.waiting')"
)
IS_HOVERED = "!document.querySelector('output.readout').classList.contains('idle')"
LABELS = "(canvases) => canvases.map((one) => one.getAttribute('aria-label')).filter(Boolean)"
PEER_BOX = """() => {
  const box = (document.querySelector('svg #left') ?? document.querySelector('svg')).getBoundingClientRect();
  const [width, height] = [0.4 * box.width, Math.min(box.height, 800)];
  return { x: box.x + 0.3 * box.width, y: Math.max(box.y, 40), width, height };
}"""


def our_box(page: Page) -> dict[str, float]:
    """Where the matrix is; it is scrolled into view."""
    matrix = page.locator(".part-matrix canvas.over").first
    matrix.scroll_into_view_if_needed()
    box = matrix.bounding_box()
    assert box
    return dict(box)


def peer_subject(path: Path) -> Subject:
    """BertViz's page."""
    hovered = "[...document.querySelectorAll('#left .background')].some((one) => one.style.opacity === '1')"
    return Subject(
        address=path.as_uri(),
        ready="document.querySelectorAll('svg line').length > 0",
        box=lambda page: page.evaluate(PEER_BOX),
        hovered=hovered if "head_view" in path.name else "true",
        prepare=answer_from_disk,
    )


@contextmanager
def served(bundle: Path) -> Iterator[str]:
    """Run `manyheads lens` and yield its address."""
    command = [sys.executable, "-m", "manyheads", "lens", str(bundle), "--no-browser", "--port", "8990"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        for line in process.stdout:
            if "http://" in line:
                yield line.split()[-1].split("#")[0]
                return
        raise SystemExit("manyheads lens did not start.")
    finally:
        process.terminate()
        process.wait(timeout=60)


def write_peer_pages(folder: Path, attention: list[torch.Tensor], tokens: list[str]) -> dict[str, dict[str, Any]]:
    """Let BertViz write its pages; return the time and the size of each, or why it failed."""
    python = prepare("bertviz")
    torch.save(attention, folder / "attention.pt")
    (folder / "tokens.json").write_text(json.dumps(tokens), "utf-8")
    pages = {}
    for name in PEER_PAGES:
        words = [str(python), str(HERE / "bertviz_pages.py"), "attention.pt", "tokens.json", ".", name]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            pages[name] = {"failed": done.stderr.strip().splitlines()[-1]}
        else:
            pages[name] = {**json.loads(done.stdout), "bytes": (folder / f"{name}.html").stat().st_size}
    return pages


def write_our_page(bundle: Path, text: str, path: Path) -> dict[str, Any]:
    """Write the page as one file; return the time and the size."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "manyheads", "lens", str(bundle), text, "--html", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"failed": (done.stderr.strip() or "no message").splitlines()[-1]}
    return {"write_seconds": time.perf_counter() - started, "bytes": path.stat().st_size}


def summary(turns: list[dict[str, Any]]) -> dict[str, Any]:
    """Medians over turns; a failure if any turn failed, nothing if there was none."""
    if not turns:
        return {}
    failures = [turn for turn in turns if "failed" in turn]
    if failures:
        return failures[0]
    names = [name for name, value in turns[0].items() if isinstance(value, int | float)]
    return {name: statistics.median(turn[name] for turn in turns) for name in names} | {"turns": turns}


def compare(browser: Browser, address: str, bundle_folder: Path, n_tokens: int, given: argparse.Namespace) -> None:
    """Measure one length and store the record."""
    from manyheads.bundle import load

    bundle = load(bundle_folder, engine="torch")
    text = text_of(bundle, n_tokens)
    with tempfile.TemporaryDirectory(prefix="manyheads-lens-") as name:
        folder = Path(name)
        file = folder / "lens.html"
        files: dict[str, Any] = {"manyheads, one file": write_our_page(bundle_folder, text, file)}
        for page, made in write_peer_pages(folder, *attention_of(bundle, text)).items():
            files[f"BertViz {page}"] = made
        ours = {
            "manyheads, served": f"{address}#text={quote(text)}",
            "manyheads, one file": file.as_uri(),
        }
        subjects = {
            title: Subject(where, IS_DRAWN, our_box, IS_HOVERED)
            for title, where in ours.items()
            if "failed" not in files.get(title, {})
        }
        for page in PEER_PAGES:
            if "failed" not in files[f"BertViz {page}"]:
                subjects[f"BertViz {page}"] = peer_subject(folder / f"{page}.html")
        load_before = stamp()["load"]
        first = measure(browser, subjects["manyheads, served"], limit=given.limit)  # computes the trace
        turns: dict[str, list[dict[str, Any]]] = {title: [] for title in subjects}
        for turn in range(given.turns):
            for title in list(subjects):
                if turns[title] and "failed" in turns[title][-1]:
                    continue  # a page that was not ready in time is not tried again
                turns[title].append(measure(browser, subjects[title], limit=given.limit))
                print(f"{n_tokens} tokens, turn {turn + 1}: {title}: {turns[title][-1]}", file=sys.stderr, flush=True)
    record = {
        **stamp(),
        "load_before": load_before,
        "chromium": browser.version,
        "n_tokens": n_tokens,
        "n_heads": 144,
        "limit_seconds": given.limit,
        "first_visit": first,
        "pages": {title: files.get(title, {}) | summary(turns.get(title, [])) for title in {**files, **turns}},
    }
    store(RESULT, f"{n_tokens} tokens", record)


def long_text(browser: Browser, address: str, bundle_folder: Path, n_tokens: int, given: argparse.Namespace) -> None:
    """Measure our page alone on a long text, and record what the page says about it."""
    from manyheads.bundle import load

    text = text_of(load(bundle_folder, engine="torch"), n_tokens)
    subject = Subject(f"{address}#text={quote(text)}", IS_DRAWN, our_box, IS_HOVERED)
    turns = [measure(browser, subject, limit=given.limit) for _ in range(given.turns)]
    page = browser.new_page()
    page.goto(subject.address)
    page.locator(".part-matrix canvas.over[aria-label]").wait_for(timeout=given.limit * 1000)
    page.wait_for_timeout(2000)
    record = {
        **stamp(),
        "n_tokens": n_tokens,
        "first_visit": turns[0],
        "pages": {"manyheads, served": summary(turns[1:])},
        "says": page.locator(".pager:visible").all_inner_texts() + page.locator("canvas.over").evaluate_all(LABELS),
    }
    page.close()
    store(RESULT, f"{n_tokens} tokens", record)


def main() -> None:
    """Measure and store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, nargs="*", default=[64, 512])
    parser.add_argument("--long", type=int, nargs="*", default=[2000])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--limit", type=float, default=240.0, help="seconds until a page counts as failed")
    given = parser.parse_args()
    path = next((found for found in map(shutil.which, CHROMIUM) if found), None)
    if path is None:
        raise SystemExit("No Chromium: apt-get install chromium")
    bundle = ROOT / "build" / "lens-benchmark" / "bundle"
    if not bundle.exists():
        make_bundle(bundle)
    with sync_playwright() as playwright, served(bundle) as address:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for n_tokens in given.tokens:
            compare(browser, address, bundle, n_tokens, given)
        for n_tokens in given.long:
            long_text(browser, address, bundle, n_tokens, given)
        browser.close()


main()
