"""No command opens a network connection: an audit hook of Python refuses every one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

# Python reports these events before a name is looked up or a socket is connected, bound or written to.
GUARD = """
import sys
FORBIDDEN = {"socket.connect", "socket.bind", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"}
def refuse(event, arguments):
    if event in FORBIDDEN:
        print("NETWORK", event, arguments, file=sys.stderr, flush=True)
        raise PermissionError(event)
sys.addaudithook(refuse)
"""
NOUNS = [a + b for a in ("tea", "cup", "bed", "sea") for b in ("room", "house", "side", "box", "bag")]


COMMANDS = (
    ["init", "rows.csv", "-o", "rows.toml"],
    ["train", "rows.toml", "train.steps=2", "--plain"],
    ["evaluate", "runs/rows/bundle"],
    ["predict", "runs/rows/bundle", "lines.txt"],
    ["doctor", "rows.toml"],
    ["heads", "show", "runs/rows/bundle"],
    ["heads", "importance", "runs/rows/bundle"],
)
# All commands in one process: importing torch takes longer than any of them.
RUN_ALL = f"""
from manyheads.cli.root import commands
for words in {COMMANDS}:
    try:
        commands.main(words)
    except SystemExit as end:
        if end.code:
            sys.exit(f"exit {{end.code}} of {{words}}")
"""


def guarded(code: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", GUARD + code],
        capture_output=True,
        text=True,
        cwd=folder,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        check=False,
    )


def test_no_command_opens_a_connection(tmp_path: Path) -> None:
    rows = [f"the {noun} is {word},{label}\n" for word, label in (("good", "yes"), ("bad", "no")) for noun in NOUNS]
    (tmp_path / "rows.csv").write_text("text,label\n" + "".join(rows), "utf-8")
    (tmp_path / "lines.txt").write_text("the teabox is good\n", "utf-8")
    done = guarded(RUN_ALL, tmp_path)
    assert "NETWORK" not in done.stderr
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("call", ["socket.socket().connect(('127.0.0.1', 9))", "socket.getaddrinfo('localhost', 80)"])
def test_guard_notices_a_connection(tmp_path: Path, call: str) -> None:
    done = guarded(f"import socket; {call}", tmp_path)
    assert "NETWORK" in done.stderr
    assert done.returncode == 1
