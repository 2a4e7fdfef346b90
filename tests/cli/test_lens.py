"""`manyheads lens`: files, pictures, the server on the loopback interface, and bad input as one line."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner

from manyheads.cli.root import commands
from manyheads.serve.local_server import listen

from cli.conftest import Run

TEXT = "Two cats are sleeping."


def test_one_file(bundle_folder: Path, manyheads: Run, tmp_path: Path) -> None:
    done = manyheads("lens", bundle_folder, TEXT, "The cat sees the dog.", "--html", "lens.html")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"Wrote lens\.html \(\d+\.\d MB\)", done.stdout)
    page = (tmp_path / "lens.html").read_text(encoding="utf-8")
    (content,) = re.findall(r'id="lens-data">(.*?)</script>', page, re.DOTALL)
    data = json.loads(content)
    assert [one["text"] for one in data["traces"]] == [TEXT, "The cat sees the dog."]
    assert data["survey"]["a"]["state"] == "ready"
    assert len(data["examples"]) == len(data["survey"]["a"]["heads"])


OFF = "off=decoder.0.cross%2F1&attention=decoder.0.cross&head=1"


def test_heads_that_are_off_when_the_page_opens(
    bundle_folder: Path, manyheads: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = manyheads("lens", bundle_folder, TEXT, "--off", "decoder.0.cross/1", "--html", "lens.html")
    assert done.returncode == 0
    assert f'data-state="{OFF.replace("&", "&amp;")}"' in (tmp_path / "lens.html").read_text(encoding="utf-8")
    monkeypatch.setattr("manyheads.serve.local_server.run", lambda app, listener, ready: listener.close())
    words = ["lens", str(bundle_folder), TEXT, "--off", "decoder.0.cross/1", "--no-browser", "--lang", "en"]
    served = CliRunner().invoke(commands, words)
    assert f"/#lang=en&{OFF}&text=Two+cats+are+sleeping." in served.output


def test_unreadable_rows_are_reported_and_the_page_is_written(
    bundle_folder: Path, manyheads: Run, tmp_path: Path
) -> None:
    (tmp_path / "bad.tsv").write_bytes(b"\xff\xfe bad")
    done = manyheads("lens", bundle_folder, TEXT, "--valid", "bad.tsv", "--html", "lens.html")
    assert done.returncode == 0
    assert done.stderr.startswith("The validation data of this bundle cannot be read.")
    assert (tmp_path / "lens.html").exists()


@pytest.mark.parametrize("more", [(), ("--head", "decoder.0.cross/1", "--view", "arcs", "--unit", "words")])
def test_pictures(bundle_folder: Path, manyheads: Run, tmp_path: Path, more: tuple[str, ...]) -> None:
    files = [word for form in ("svg", "png", "pdf") for word in (f"--{form}", f"head.{form}")]
    done = manyheads("lens", bundle_folder, TEXT, *files, *more)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "Wrote head.svg\nWrote head.png\nWrote head.pdf\n"
    assert (tmp_path / "head.svg").read_bytes().startswith(b"<?xml")
    assert (tmp_path / "head.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "head.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["nowhere", TEXT], "nowhere"),
        (["RUN", TEXT], "is the folder of a run. Give its bundle:"),
        (["BUNDLE", "", "--html", "x.html"], "The text is empty. Type a sentence."),
        (["BUNDLE", "a " * 500, "--html", "x.html"], "tokens"),
        (
            ["BUNDLE", TEXT, "--head", "encoder.9.self/0", "--svg", "x.svg"],
            "There is no head encoder.9.self/0. Did you mean encoder.0.self/0?",
        ),
        (["BUNDLE", TEXT, "--off", "encoder.9.self/0"], "There is no head encoder.9.self/0. Did you mean"),
        (["BUNDLE", TEXT, "--off", "encoder.0.self", "--svg", "x.svg"], "--off is for the page"),
        (["BUNDLE", TEXT, "--head", "nonsense", "--svg", "x.svg"], "is not a head"),
        (["BUNDLE", TEXT, "--svg", "no/folder/x.svg"], "the folder no/folder does not exist"),
        (["BUNDLE", TEXT, "--html", "BUNDLE"], "is a folder. Choose a file to write to."),
        (["BUNDLE", TEXT, "--answer", "猫", "--compare", "nowhere"], "nowhere"),
        (["BUNDLE", "a", "b", "--answer", "猫"], "--answer belongs to one TEXT"),
        (["BUNDLE", TEXT, "--port", "99999"], "99999"),
        (["BUNDLE", TEXT, "--host", "192.0.2.1", "--no-browser"], "The address 192.0.2.1:8877 cannot be used"),
    ],
)
def test_bad_input(bundle_folder: Path, manyheads: Run, words: list[str], line: str) -> None:
    places = {"BUNDLE": str(bundle_folder), "RUN": str(bundle_folder.parent)}
    done = manyheads("lens", *(places.get(word, word) for word in words))
    assert done.returncode != 0
    assert line in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 4  # click adds a line of usage and one of help


def test_a_server_on_the_next_free_port(bundle_folder: Path, tmp_path: Path) -> None:
    with listen("127.0.0.1", 18_700) as taken:
        port = taken.getsockname()[1]
        process = subprocess.Popen(
            [sys.executable, "-m", "manyheads", "lens", bundle_folder, TEXT, "--no-browser", "--port", str(port)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=tmp_path,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        try:
            assert process.stdout is not None
            first, second = process.stdout.readline(), process.stdout.readline()
            used = int(re.findall(r"using (\d+)", first)[0])
            assert first == f"Port {port} is in use; using {used}.\n" and used > port
            assert second == f"manyheads lens  http://127.0.0.1:{used}/#lang=en&text=Two+cats+are+sleeping.\n"
            assert process.stdout.readline() == "Press Ctrl-C to stop.\n"
            shutil.rmtree(bundle_folder)  # the page goes on with the copy in memory
            body = json.dumps({"text": TEXT, "answer": "猫"}).encode()
            request = urllib.request.Request(
                f"http://127.0.0.1:{used}/api/trace", body, {"Content-Type": "application/json"}
            )
            with urllib.request.urlopen(request, timeout=30) as answer:
                notes = json.load(answer)["notes"]
            assert any("was deleted" in note["en"] for note in notes)
        finally:
            process.send_signal(signal.SIGINT)
            rest, _ = process.communicate(timeout=30)
    assert "Traceback" not in rest
    assert rest.endswith("Stopped.\n")
    assert process.returncode == 130  # as every command that Ctrl-C ends
