"""Bad input on the page: always a clear message, never a blank page, and text stays text."""

import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from manyheads.bundle import load

from serve.conftest import Open
from serve.lens_pages import LensPage, serving

CAT = "猫在睡觉"
STATUS_422 = "status of 422"  # the browser's own line about an answer of the server
ATTACK = "<img src=x onerror=alert(1)>\"'</script><script>document.title='owned'</script>&amp;"


def submit(opened: LensPage, text: str) -> Page:
    box = opened.page.get_by_role("textbox", name="Text")
    box.fill(text)
    opened.page.get_by_role("button", name="Look").click()
    return opened.page


def test_empty_text_is_refused_and_the_former_result_stays(lens: Open) -> None:
    opened = lens()
    opened.open(CAT)
    for text in ("", "   \n "):
        page = submit(opened, text)
        expect(page.get_by_role("alert")).to_have_text(re.compile("Enter a text first"))
        expect(page.get_by_role("application", name=re.compile("Attention matrix"))).to_be_visible()
    assert opened.state()["text"] == CAT


@pytest.mark.parametrize("length", [1100, 20_001, 200_000])
def test_text_over_the_limit_says_what_the_limit_is(lens: Open, length: int) -> None:
    opened = lens("masked")
    opened.allow(STATUS_422)
    opened.open(CAT)
    page = submit(opened, "猫" * length)
    expect(page.get_by_role("alert")).to_have_text(re.compile(r"limit is 20,000|at most 1,0\d\d at once"))


def test_text_over_the_limit_in_the_address(lens: Open) -> None:
    opened = lens("masked")
    opened.allow(STATUS_422)
    page = opened.open("猫" * 1500)
    expect(page.get_by_role("alert")).to_be_visible()
    submit(opened, CAT)
    expect(page.get_by_role("application", name=re.compile("Attention matrix"))).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


@pytest.mark.parametrize(
    "text", ["😀😀🎉", "مرحبا بالعالم", "שלום עולם", "\u202ehidden\u202c", "a\u0301\u0327", "。。。"]
)
@pytest.mark.parametrize("task", ["seq2seq", "tag"])
def test_odd_scripts_are_read(lens: Open, task: str, text: str) -> None:
    opened = lens(task)
    page = opened.open(text, unit="characters")
    expect(page.get_by_role("application", name=re.compile("Attention matrix"))).to_be_visible()
    shown = page.get_by_role("application", name=re.compile("The text, colored by attention")).text_content() or ""
    assert "0x" not in shown and "�" not in shown
    expect(page.get_by_role("alert")).to_have_count(0)


def test_text_stays_text(lens: Open) -> None:
    opened = lens()
    page = opened.open(ATTACK, answer=ATTACK, unit="words")
    page.on("dialog", lambda dialog: pytest.fail(f"a dialog: {dialog.message}"))
    assert page.title() != "owned"
    assert page.locator("#app img[src=x], #app script").count() == 0
    expect(page.get_by_role("textbox", name="Text", exact=True)).to_have_value(ATTACK)
    for name in ("heads", "compare", "tour"):
        opened.open(ATTACK, page=name)
        assert page.locator("#app img[src=x], #app script").count() == 0
    page.get_by_role("link", name="One text").click()
    opened.settle()


def test_names_of_folders_and_labels_stay_text(lens: Open, trained: Callable[[str], Path], tmp_path: Path) -> None:
    run = tmp_path / "<b>x" / "<img src=x onerror=alert(1)>'\""
    bundle = load(trained("classify"), engine="torch")
    task = bundle.task
    object.__setattr__(task, "labels", tuple(f"<i>{label}</i>" for label in task.labels))
    bundle.save(run / "bundle")
    with serving(run / "bundle") as address:
        opened = lens(address=address)
        page = opened.open(CAT)
        expect(page.get_by_role("heading", level=1)).to_have_text(run.name)
        expect(page.get_by_role("rowheader", name="<i>").first).to_be_visible()
        assert page.locator("#app img[src=x], #app i").count() == 0
        page.goto("about:blank")  # the page asks for the survey every second, also while the server stops


def test_a_bundle_deleted_while_the_page_is_open(lens: Open, trained: Callable[[str], Path], tmp_path: Path) -> None:
    shutil.copytree(trained("masked"), tmp_path / "run" / "bundle")
    with serving(tmp_path / "run" / "bundle") as address:
        opened = lens(address=address)
        page = opened.open(CAT)
        shutil.rmtree(tmp_path / "run")
        submit(opened, "猫在[MASK]觉。")
        expect(page.get_by_text("The folder of this bundle was deleted")).to_be_visible()
        expect(page.get_by_role("application", name=re.compile("Attention matrix"))).to_be_visible()
        page.goto("about:blank")


def test_a_server_that_is_gone_is_reported(lens: Open, trained: Callable[[str], Path]) -> None:
    with serving(trained("masked")) as address:
        opened = lens(address=address)
        opened.open(CAT)
    opened.allow("ERR_CONNECTION_REFUSED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET")
    page = submit(opened, "猫")
    expect(page.get_by_role("alert").filter(has_text="No answer from the server").first).to_be_visible()


def test_without_javascript_the_page_says_so(lens: Open) -> None:
    opened = lens(java_script_enabled=False)
    opened.page.goto(opened.address)
    shown = opened.page.locator("body").inner_text()
    assert "This page needs JavaScript" in shown
    assert "本页需要 JavaScript" in shown


def test_a_port_in_use_gives_the_next_free_one(trained: Callable[[str], Path]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "manyheads", "lens", str(trained("masked")), CAT, "--no-browser"]
        process = subprocess.Popen(
            [*command, "--port", str(port)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert process.stdout
        lines = [process.stdout.readline(), process.stdout.readline()]
        process.terminate()
        process.communicate(timeout=60)
    assert f"Port {port} is in use" in lines[0]
    assert re.search(r"http://127\.0\.0\.1:\d+/#", lines[1])
