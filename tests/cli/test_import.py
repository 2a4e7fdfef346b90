"""`manyheads import`."""

import json
from pathlib import Path

from cli.conftest import Run
from interop import foreign


def test_a_folder_becomes_a_bundle_that_other_commands_take(manyheads: Run, tmp_path: Path) -> None:
    foreign.write_bert(tmp_path / "model")
    done = manyheads("import", tmp_path / "model", "-o", tmp_path / "bundle")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Wrote {tmp_path / 'bundle'}: task embed, 2 heads, ")
    predicted = manyheads("predict", tmp_path / "bundle", stdin="the cat\n")
    assert predicted.returncode == 0
    assert len(json.loads(predicted.stdout)) == foreign.WIDTH


def test_faults_are_one_line_and_nothing_is_written(manyheads: Run, tmp_path: Path) -> None:
    done = manyheads("import", tmp_path / "missing", "-o", tmp_path / "bundle")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1 and "does not exist. Give a folder with a config.json" in done.stderr
    foreign.write_bert(tmp_path / "model")
    (tmp_path / "model" / "model.safetensors").rename(tmp_path / "model" / "pytorch_model.bin")
    done = manyheads("import", tmp_path / "model", "-o", tmp_path / "bundle")
    assert done.returncode == 1 and "is a pickle, which could run any code" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]


def test_an_existing_bundle_is_not_overwritten(manyheads: Run, tmp_path: Path) -> None:
    done = manyheads("import", tmp_path, "-o", tmp_path)
    assert done.returncode == 2 and "already exists. Name a new folder." in done.stderr
