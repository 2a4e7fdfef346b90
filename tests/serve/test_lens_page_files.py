"""What leaves the page: one file that works from disk, and pictures for papers."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from manyheads.serve.lens_page.lens_file import page_of
from manyheads.serve.lens_page.lens_model import LensModel
from manyheads.serve.lens_page.lens_session import LensSession, TraceRequest

from serve.conftest import TASKS, Open
from serve.lens_pages import LensPage

CAT = "猫在睡觉"
MAGIC = {"png": b"\x89PNG", "pdf": b"%PDF-", "svg": b"<?xml"}


@pytest.fixture
def saved(trained: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Path]:
    """Return the page of one text as a file."""

    def write(task: str) -> Path:
        path = tmp_path / f"{task}.html"
        session = LensSession([LensModel.open(trained(task))])
        path.write_text(page_of(session, [session.trace(TraceRequest("a", CAT))]), "utf-8")
        return path

    return write


def expect_from_disk(opened: LensPage, path: Path) -> None:
    """Use a saved page: heads off, norms, nothing asked of any server."""
    page = opened.page
    page.goto(path.as_uri())
    opened.settle()
    expect(page.get_by_text("saved page")).to_be_visible()
    expect(page.get_by_role("application", name=re.compile("Attention matrix"))).to_be_visible()
    page.get_by_role("switch", name=re.compile(r"coder 0\.0 on or off")).first.click()
    expect(page.locator(".region-answer").get_by_role("heading", name="Without 1 head")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)
    page.get_by_role("button", name="Norm-weighted").click()
    expect(page.get_by_text("‖α f(x)‖").first).to_be_visible()


def test_saved_pages_work_from_disk_and_say_what_is_missing_or_broken(
    lens: Open, saved: Callable[[str], Path], tmp_path: Path
) -> None:
    opened = lens(address=tmp_path.as_uri())
    page = opened.page
    for task in TASKS:
        expect_from_disk(opened, saved(task))
    page.get_by_role("button", name="中文").click()  # the file has the texts of both languages
    expect(page.get_by_role("heading", name="填词")).to_be_visible()
    page.get_by_role("button", name="English").click()
    expect(page.get_by_role("heading", name="Masked words")).to_be_visible()
    several = opened.hash_of(off="encoder.0.self/0,encoder.1.self/1,decoder.0.self/1")
    page.goto((tmp_path / "seq2seq.html").as_uri() + several)
    expect(page.get_by_text("Start manyheads lens with the bundle to compute it").first).to_be_visible()
    expect(page.get_by_role("application", name=re.compile("Attention matrix"))).to_be_visible()

    whole = (tmp_path / "masked.html").read_text("utf-8")
    start = whole.index('id="lens-data">') + len('id="lens-data">')
    end = whole.index("</script>", start)
    edited = {
        "cut": whole[:start] + whole[start : start + 200] + "</script></body></html>",
        "emptied": whole[:start] + "{}" + whole[end:],
        "no maps": whole[:start] + json.dumps(json.loads(whole[start:end]) | {"maps": {}}) + whole[end:],
    }
    for name, content in edited.items():
        path = tmp_path / f"{name}.html"
        path.write_text(content, "utf-8")
        page.goto(path.as_uri())
        message = page.get_by_text(re.compile("cannot be read|does not contain that|did not start"))
        expect(message.first).to_be_visible()
    assert {url.split(":")[0] for url in opened.requests} <= {"file", "data", "blob"}


def test_pictures_are_saved(lens: Open) -> None:
    page = lens().open(CAT)
    pictures = [(part, form) for part in ("Arcs", "Matrix", "Text") for form in MAGIC]
    for part, form in pictures:
        if (part, form) == ("Text", "pdf"):
            expect(page.get_by_role("link", name="Save Text as PDF")).to_have_count(0)
            continue
        with page.expect_download() as download:
            page.get_by_role("link" if form == "pdf" else "button", name=f"Save {part} as {form.upper()}").click()
        content = Path(download.value.path()).read_bytes()
        assert content.startswith(MAGIC[form])
        assert download.value.suggested_filename.endswith(f".{form}")
        if form == "svg":
            drawing = content.decode()
            assert "var(" not in drawing and "http" not in drawing.replace("http://www.w3.org/", "")
            assert "猫" in drawing
