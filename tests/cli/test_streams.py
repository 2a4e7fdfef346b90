"""Standard streams that cannot take every character, or that the caller has closed; commands that can be copied."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from manyheads.cli.rendering.output import quoted

from cli.conftest import environment_of

HELP = ("--lang", "zh", "quickstart", "--help")
TITLE = "用法："


def run(*words: object, redirect: str = "", encoding: str = "") -> "subprocess.CompletedProcess[bytes]":
    """Run `manyheads` in a shell that redirects its streams."""
    command = shlex.join([sys.executable, "-m", "manyheads", *map(str, words)])
    environment = environment_of(1) | ({"PYTHONIOENCODING": encoding} if encoding else {})
    return subprocess.run(["sh", "-c", f"{command} {redirect}"], capture_output=True, env=environment, check=False)


@pytest.mark.parametrize(
    ("encoding", "title"),
    [
        ("ascii", TITLE.encode()),  # what Python uses in a locale that it does not know
        ("gb18030", TITLE.encode("gb18030")),
        ("latin-1", rb"\u7528\u6cd5\uff1a"),
    ],
)
def test_any_text_can_be_printed(encoding: str, title: bytes) -> None:
    done = run(*HELP, encoding=encoding)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(title)


def test_an_error_is_printed_in_ascii_too(tmp_path: Path) -> None:
    done = run("evaluate", tmp_path / "没有", encoding="ascii")
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode() == f"Error: {tmp_path}/没有: there is no such folder.\n"


@pytest.mark.parametrize("redirect", ["2>&-", ">&-", "<&- >&- 2>&-"])
def test_closed_streams(bundle_folder: Path, tmp_path: Path, redirect: str) -> None:
    (tmp_path / "信 件").write_text("The dog sleeps.\n", encoding="utf-8")
    words = ("predict", bundle_folder, tmp_path / "信 件", "--engine", "torch", "-o", tmp_path / "答 案")
    assert run(*words, redirect=redirect).returncode == 0
    assert (tmp_path / "答 案").read_text("utf-8").count("\n") == 1


def test_a_path_in_a_command_is_one_word() -> None:
    for path in ("runs/mail/bundle", "运行/bundle", "运行 一/bundle", "it's", "a$b"):
        assert shlex.split(quoted(path)) == [path]
    assert quoted("运行/bundle") == "运行/bundle"
    assert quoted("运行 一/bundle") == "'运行 一/bundle'"
