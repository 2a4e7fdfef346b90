"""What leaves the page: one file that works from disk, and pictures for papers."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from manyheads.serve.lens_file import page_of
from manyheads.serve.lens_session import LensSession, TraceRequest
from manyheads.serve.opened_bundle import OpenedBundle

from serve.conftest import TASKS, Open

CAT = "猫在睡觉"
MAGIC = {"png": b"\x89PNG", "pdf": b"%PDF-", "svg": b"<?xml"}


@pytest.fixture(scope="session")
def saved(trained: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return the page of one text as a file."""
    folder = tmp_path_factory.mktemp("saved")

    def write(task: str) -> Path:
        path = folder / f"{task}.html"
        if not path.exists():
            session = LensSession([OpenedBundle.open(trained(task))])
            path.write_text(page_of(session, [session.trace(TraceRequest("a", CAT))]), "utf-8")
        return path

    return write


@pytest.mark.parametrize("task", TASKS)
def test_a_saved_page_works_from_disk_without_a_network(lens: Open, saved: Callable[[str], Path], task: str) -> None:
    opened = lens(address=saved(task).as_uri())
    page = opened.open()
    expect(page.get_by_text("saved page")).to_be_visible()
    expect(page.get_by_role("application", name=re.compile("Attention matrix"))).to_be_visible()
    page.get_by_role("switch", name=re.compile(r"coder 0\.0 on or off")).first.click()
    expect(page.locator(".region-answer").get_by_role("heading", name="Without 1 head")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)
    page.get_by_role("button", name="Norm-weighted").click()
    expect(page.get_by_text("‖α f(x)‖").first).to_be_visible()
    assert {url.split(":")[0] for url in opened.requests} <= {"file", "data", "blob"}


def test_a_saved_page_says_what_it_does_not_contain(lens: Open, saved: Callable[[str], Path]) -> None:
    opened = lens(address=saved("seq2seq").as_uri())
    page = opened.open(off="encoder.0.self/0,encoder.1.self/1,decoder.0.self/1")
    expect(page.get_by_text("Start manyheads lens with the bundle to compute it").first).to_be_visible()
    expect(page.get_by_role("application", name=re.compile("Attention matrix"))).to_be_visible()


def test_the_page_itself_is_saved_by_its_link(lens: Open, tmp_path: Path) -> None:
    opened = lens("classify")
    page = opened.open(CAT)
    with page.expect_download(timeout=90_000) as download:
        page.get_by_role("link", name="Save page as one file").click()
    download.value.save_as(tmp_path / "lens.html")
    again = lens(address=(tmp_path / "lens.html").as_uri())
    again.open()
    expect(again.page.get_by_role("heading", name="Class", exact=True)).to_be_visible()


def test_a_file_edited_by_hand_is_reported(lens: Open, saved: Callable[[str], Path], tmp_path: Path) -> None:
    whole = saved("masked").read_text("utf-8")
    start = whole.index('id="lens-data">') + len('id="lens-data">')
    data = json.loads(whole[start : whole.index("</script>", start)])
    broken = {
        "cut": whole[:start] + whole[start : start + 200] + "</script></body></html>",
        "emptied": whole[:start] + "{}" + whole[whole.index("</script>", start) :],
        "no maps": whole[:start] + json.dumps(data | {"maps": {}}) + whole[whole.index("</script>", start) :],
    }
    for name, content in broken.items():
        path = tmp_path / f"{name}.html"
        path.write_text(content, "utf-8")
        opened = lens(address=path.as_uri())
        opened.page.goto(path.as_uri())
        message = opened.page.get_by_text(re.compile("cannot be read|does not contain that|did not start"))
        expect(message.first).to_be_visible()


@pytest.mark.parametrize("part", ["Arcs", "Matrix", "Text"])
@pytest.mark.parametrize("form", ["svg", "png", "pdf"])
def test_pictures_are_saved(lens: Open, tmp_path: Path, part: str, form: str) -> None:
    if (part, form) == ("Text", "pdf"):
        pytest.skip("There is no PDF of the text.")
    opened = lens()
    page = opened.open(CAT)
    role = "link" if form == "pdf" else "button"
    with page.expect_download() as download:
        page.get_by_role(role, name=f"Save {part} as {form.upper()}").click()
    content = Path(download.value.path()).read_bytes()
    assert content.startswith(MAGIC[form])
    assert download.value.suggested_filename.endswith(f".{form}")
    if form == "svg":
        drawing = content.decode()
        assert "var(" not in drawing and "http" not in drawing.replace("http://www.w3.org/", "")
        assert "猫" in drawing
