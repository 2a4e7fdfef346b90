"""`make fresh`: what it says when it cannot run, and what it asks of docker. The machine itself is not made here."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("fresh_machine.sh")
TOOLS = ("awk", "bash", "cp", "env", "git", "grep", "id", "mkdir", "mktemp", "python3", "rm", "sed", "sort")


def run(programs: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": str(programs), "HOME": os.environ.get("HOME", "/"), **variables}
    return subprocess.run(["bash", SCRIPT], env=environment, capture_output=True, text=True)


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with what every Linux has: neither debootstrap nor docker."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in TOOLS:
        if found := shutil.which(name):
            (folder / name).symlink_to(found)
    return folder


def test_what_is_missing_is_said_in_one_line(programs: Path) -> None:
    done = run(programs)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("make fresh needs root and debootstrap on Debian (apt install debootstrap)")


def test_an_unknown_variant(programs: Path) -> None:
    done = run(programs, VARIANT="windows")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "make fresh: there is no VARIANT=windows. Use user, ascii, homeless or path.\n"


@pytest.mark.skipif(
    shutil.which("git") is None or not (SCRIPT.parents[1] / ".git").exists(), reason="it copies what git has committed"
)
def test_docker_gets_the_commit_the_variables_and_the_packages(programs: Path, tmp_path: Path) -> None:
    stub = (
        "#!/usr/bin/env bash\n"
        "[ $1 != info ] || exit 0\n"
        f"printf '%s\\n' \"$@\" > {tmp_path}/asked\n"
        'while [ "$1" != --volume ]; do shift; done\n'
        f'cp -R "${{2%%:*}}" {tmp_path}/fresh\n'
        "exit 7\n"
    )
    (programs / "docker").write_text(stub)
    (programs / "docker").chmod(0o755)
    done = run(programs, CMD="make test", BARE="gcc,chromium", VARIANT="path", PIP_TIMEOUT="9", SECRET="no")
    assert (done.returncode, done.stderr) == (7, "")
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked[0] == "run"
    assert {"CMD=make test", "VARIANT=path", "PIP_TIMEOUT=9"} < {*asked}
    assert asked[-3:] == ["bash", "/fresh/fresh_machine.sh", "inside"]
    assert "SECRET=no" not in asked
    fresh = tmp_path / "fresh"
    assert (fresh / "install").read_text() == "python3,python3-venv,make,ca-certificates,gcc,chromium\n"
    listed = subprocess.run(["tar", "-tf", fresh / "project.tar"], capture_output=True, text=True, check=True)
    assert "pyproject.toml" in listed.stdout.splitlines()
