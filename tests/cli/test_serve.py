"""`manyheads serve`: names, checks and errors before anything is served."""

import socket
from pathlib import Path

from manyheads.cli.serve import _named

from cli.conftest import Run


def test_bundles_are_named_after_their_runs_unless_a_name_is_given(tmp_path: Path) -> None:
    folders = _named((f"{tmp_path}/mail/bundle", f"en-zh={tmp_path}/other/bundle", f"{tmp_path}/alone"))
    assert folders == {
        "mail": f"{tmp_path}/mail/bundle",
        "en-zh": f"{tmp_path}/other/bundle",
        "alone": f"{tmp_path}/alone",
    }


def test_two_bundles_of_one_name_are_refused(manyheads: Run) -> None:
    done = manyheads("serve", "a/bundle", "b/a/bundle")
    assert done.returncode == 2
    assert "Two bundles are called a. Give names" in done.stderr


def test_a_missing_bundle_is_one_line(manyheads: Run, tmp_path: Path) -> None:
    done = manyheads("serve", str(tmp_path / "none"), "--check", "--workers", "1")
    assert done.returncode == 1
    assert str(tmp_path / "none") in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_in_use_is_reported_before_bundles_are_loaded(manyheads: Run, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = manyheads("serve", str(tmp_path / "none"), "--port", str(port))
    assert done.returncode == 1
    assert f"Port {port} of 127.0.0.1 is in use or not allowed. Give another --port." in done.stderr


def test_keys_that_cannot_be_read_are_reported(manyheads: Run, tmp_path: Path) -> None:
    done = manyheads("serve", str(tmp_path), "--keys", str(tmp_path / "keys"))
    assert done.returncode == 1
    assert "cannot be read: No such file or directory." in done.stderr


def test_check_loads_every_bundle(manyheads: Run, bundle_folder: Path) -> None:
    done = manyheads("serve", f"own={bundle_folder}", "--check", "--workers", "1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("own: seq2seq, ")
    assert done.stdout.endswith("All bundles were loaded and answered a text.\n")
