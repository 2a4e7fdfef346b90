"""`manyheads train`: from a recipe to scores, which `evaluate` reproduces."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from manyheads.bundle import Bundle
from manyheads.settings import to_toml

from cli.conftest import Run

Table = Callable[..., dict[str, object]]


@pytest.fixture
def recipe(tmp_path: Path, recipe_table: Table) -> Path:
    (tmp_path / "small.toml").write_text(to_toml(recipe_table()), "utf-8")
    return tmp_path / "small.toml"


def test_train_then_evaluate(manyheads: Run, recipe: Path, tmp_path: Path) -> None:
    done = manyheads("train", recipe, "train.steps=4")
    assert (done.returncode, done.stderr) == (0, "")
    for expected in (
        "step 4 of 4",
        "unseen combinations",
        "BLEU nrefs:1",
        "runs/small/bundle",
        "manyheads predict",
        "Report:",
    ):
        assert expected in done.stdout
    bundle = tmp_path / "runs" / "small" / "bundle"
    payload = json.loads(manyheads("evaluate", bundle, "--json").stdout)
    kept = json.loads((bundle / "bundle.json").read_text("utf-8"))["scores"]
    assert {name: row["scores"] for name, row in payload.items()} == kept
    assert payload["test"]["n_sentences"] == 1000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.toml"], "Error: nowhere.toml: there is no such file."),
        (["small.toml", "model.n_heads=7"], "model.n_heads = 7 does not divide model.width = 16. Use"),
        (["small.toml", "train.step=7"], "train.step is not a setting. Did you mean steps?"),
        (["small.toml", "steps"], "is not an override. Write key=value"),
        (["small.toml", 'data={train=["a.en","b.zh"]}'], "a.en"),
        (["small.toml", "device=tpu"], 'device = "tpu" is not available on this machine'),
    ],
)
def test_bad_input(manyheads: Run, recipe: Path, arguments: list[str], message: str) -> None:
    done = manyheads("train", *arguments)
    assert done.returncode == 1
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_refused_folder_gets_no_report(manyheads: Run, recipe: Path) -> None:
    done = manyheads("train", recipe, "-o", ".")
    assert done.returncode == 1
    assert "Report" not in done.stdout


def test_unequal_files_are_refused_before_training(manyheads: Run, recipe: Path, tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("one\ntwo\nthree\n")
    (tmp_path / "a.zh").write_text("一\n二\n")
    done = manyheads("train", recipe, f'data={{train=["{tmp_path}/a.en", "{tmp_path}/a.zh"]}}')
    assert done.returncode == 1
    assert "a.en has 3 lines" in done.stderr.replace(str(tmp_path) + "/", "")
    assert len(done.stderr.splitlines()) == 1


def test_evaluate_with_missing_files(manyheads: Run, tmp_path: Path, untrained: Bundle) -> None:
    data = {"train": [str(tmp_path / "gone.en"), str(tmp_path / "gone.zh")]}
    replace(untrained, recipe={"data": data}).save(tmp_path / "bundle")
    done = manyheads("evaluate", "bundle")
    assert done.returncode == 1
    assert "gone.en: there is no such file" in done.stderr
    assert "Or give a test set: manyheads evaluate bundle DATA." in done.stderr


def stopped_at(text: str, kind: signal.Signals, folder: Path, *words: str) -> tuple[bytes, float]:
    """Send a signal to `manyheads train` once its log contains a text.

    Return its standard error, and the processor time that it went on for: on a busy machine the clock says nothing.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen(
        [sys.executable, "-m", "manyheads", "train", *words, "-o", "run"],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    log = folder / "run" / "log.jsonl"
    deadline = time.monotonic() + 120
    while text not in (log.read_text("utf-8") if log.exists() else "") and time.monotonic() < deadline:
        time.sleep(0.1)
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    sent = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # user and system time so far
    process.send_signal(kind)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Traceback" not in err
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return err, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime - sent


def test_signal_while_scoring_is_obeyed_at_once(recipe: Path, tmp_path: Path) -> None:
    """Scoring a thousand sentences with these settings takes much longer."""
    decode = "decode={beam=32, max_new_tokens=200, n_best=1}"
    err, seconds = stopped_at("scoring the test set", signal.SIGTERM, tmp_path, str(recipe), "train.steps=2", decode)
    assert b"all 2 steps are saved. For scores and bundle, finish with:  manyheads train" in err
    assert seconds < 2.0


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_signal_saves_and_shows_how_to_resume(recipe: Path, tmp_path: Path, kind: signal.Signals) -> None:
    err, _ = stopped_at('"Step"', kind, tmp_path, str(recipe), "train.steps=100000")
    log = tmp_path / "run" / "log.jsonl"
    assert b"is saved. Resume with:  manyheads train" in err
    steps = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    assert steps[-1]["event"] == "Interrupted"
    assert (tmp_path / "run" / "checkpoints" / f"step-{steps[-1]['step']:08d}").is_dir()
