"""`manyheads export`."""

from pathlib import Path

import pytest

from cli.conftest import Run

pytest.importorskip("ctranslate2", reason="the extra manyheads[ctranslate2] is not installed")


def test_bundle_is_exported(manyheads: Run, bundle_folder: Path, tmp_path: Path) -> None:
    done = manyheads("export", bundle_folder, "--format", "ctranslate2", "-o", tmp_path / "ct2")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Wrote {tmp_path / 'ct2'} (ctranslate2).")
    assert {"model.bin", "config.json", "tokenizer.model"} <= {path.name for path in (tmp_path / "ct2").iterdir()}


def test_existing_folder_is_not_overwritten(manyheads: Run, bundle_folder: Path) -> None:
    done = manyheads("export", bundle_folder, "--format", "ctranslate2", "-o", bundle_folder)
    assert done.returncode == 2
    assert "already exists. Name a new folder." in done.stderr


def test_unknown_format_is_refused(manyheads: Run, bundle_folder: Path, tmp_path: Path) -> None:
    done = manyheads("export", bundle_folder, "--format", "onyx", "-o", tmp_path / "out")
    assert done.returncode == 2
    assert "'onyx' is not" in done.stderr
