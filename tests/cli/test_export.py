"""`manyheads export`."""

import json
import zipfile
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
    done = manyheads("export", bundle_folder, "--to", "onyx", "-o", tmp_path / "out")
    assert done.returncode == 2
    assert "'onyx' is not one of 'hf', 'ctranslate2', 'argos'" in done.stderr


def test_argos_package_is_written(manyheads: Run, bundle_folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "out.argosmodel"
    done = manyheads("export", bundle_folder, "--to", "argos", "-o", path)
    assert (done.returncode, done.stderr) == (0, "")
    with zipfile.ZipFile(path) as package:
        (folder,) = {name.split("/")[0] for name in package.namelist()}
        metadata = json.loads(package.read(f"{folder}/metadata.json"))
        assert metadata["from_code"] and metadata["to_code"]
        assert {f"{folder}/sentencepiece.model", f"{folder}/model/model.bin"} <= set(package.namelist())
