"""Checks of a run, on a log made for each fault."""

import json
import math
from pathlib import Path

import pytest

from manyheads.doctor import training_checks
from manyheads.doctor.run_log import RunLog, read_log
from manyheads.storage import atomic_folder, locked
from manyheads.training import TrainSettings

Events = list[dict[str, object]]


def steps(losses: list[float], first: int = 1) -> Events:
    return [
        {"event": "Step", "time": 1e9 + step, "step": step, "loss": loss, "gradient_norm": 1.0, "seconds": 0.1}
        for step, loss in enumerate(losses, first)
    ]


def validated(step: int, score: float, found: str = "Gut.") -> dict[str, object]:
    sample = [f"Source {step}.", found, "Reference."]
    return {"event": "Validated", "time": 1e9 + step, "step": step, "bleu": score, "best": score, "sample": sample}


def logged(folder: Path, events: Events, *, end: str = "Finished") -> RunLog:
    last: Events = [{"event": end, "time": 2e9}] if end else []
    text = "".join(json.dumps(event) + "\n" for event in events + last)
    (folder / "log.jsonl").write_text(text, "utf-8")
    return read_log(folder)


def falling(count: int = 400) -> list[float]:
    return [8.0 * math.exp(-step / 150) + 1.0 for step in range(count)]


def test_healthy_run_is_good(tmp_path: Path) -> None:
    scores = [validated(step, step / 20, f"Translation {step}.") for step in range(50, 401, 50)]
    log = logged(tmp_path, steps(falling()) + scores)
    checks = [
        training_checks.check_log, training_checks.check_running, training_checks.check_finite,
        training_checks.check_divergence, training_checks.check_progress, training_checks.check_overfitting,
        training_checks.check_samples,
    ]  # fmt: skip
    assert [finding for finding in (check(log) for check in checks) if finding.verdict != "good"] == []
    assert training_checks.check_checkpoints(tmp_path).verdict == "good"


def test_divergence_spikes_and_nan(tmp_path: Path) -> None:
    up = [2.0 + step / 50 for step in range(200)]
    finding = training_checks.check_divergence(logged(tmp_path, steps(falling(200) + up)))
    assert finding.verdict == "bad"
    assert "has risen to" in finding.message
    assert "learning_rate" in finding.fix
    spiky = falling()
    spiky[200:220] = [8.0] * 20
    finding = training_checks.check_divergence(logged(tmp_path, steps(spiky)))
    assert (finding.verdict, "first before step 220" in finding.message) == ("warning", True)
    broken = training_checks.check_finite(logged(tmp_path, steps([*falling(50), math.nan])))
    assert (broken.verdict, "step 51" in broken.message) == ("bad", True)


@pytest.mark.parametrize(("warmup", "verdict"), [(50, "good"), (51, "warning"), (100, "warning"), (101, "bad")])
def test_warmup_against_the_length_of_the_run(warmup: int, verdict: str) -> None:
    assert training_checks.check_warmup(TrainSettings(steps=100, warmup=warmup)).verdict == verdict


def test_no_progress(tmp_path: Path) -> None:
    assert training_checks.check_progress(logged(tmp_path, steps([8.0] * 300))).verdict == "bad"
    assert training_checks.check_progress(logged(tmp_path, steps([8.0] * 30))).verdict == "good"


@pytest.mark.parametrize("key", ["bleu", "score"])
def test_overfitting_since_its_best_step(tmp_path: Path, key: str) -> None:
    values = {100: 20.0, 150: 30.0, 200: 35.0, 250: 33.0, 300: 31.0, 350: 30.0, 400: 29.0}
    events = [validated(step, 50.0) | {key: value} for step, value in values.items()]
    finding = training_checks.check_overfitting(logged(tmp_path, steps(falling()) + events))
    assert finding.verdict == "warning"
    assert "since step 200 the score has fallen from 35.0 to 29.0" in finding.message
    assert all(
        word in finding.fix for word in ("dropout", "task.consistency", "tokenizer.sampling", "train.average_snapshots")
    )


def test_rise_of_the_loss_at_the_start_of_r_drop_is_good(tmp_path: Path) -> None:
    values = {100: 20.0, 150: 35.0, 250: 33.0, 300: 31.0, 350: 30.0, 400: 29.0}
    events = [validated(step, score) for step, score in values.items()]
    losses = [loss + 4.0 * (step > 200) for step, loss in enumerate(falling(), 1)]
    assert training_checks.check_divergence(logged(tmp_path, steps(losses) + events)).verdict == "bad"
    (tmp_path / "recipe.toml").write_text("[task]\nconsistency = 4.0\nconsistency_after = 200\n", "utf-8")
    log = logged(tmp_path, steps(losses) + events)
    assert training_checks.check_divergence(log).verdict == "good"
    finding = training_checks.check_overfitting(log)  # the loss still falls on R-Drop's own side
    assert finding.verdict == "warning"
    assert "task.consistency" not in finding.fix
    up = [*losses[:300], *(9.0 + step / 50 for step in range(100))]
    assert training_checks.check_divergence(logged(tmp_path, steps(up))).verdict == "bad"


def test_collapsed_samples(tmp_path: Path) -> None:
    events = [validated(step, 1.0, "ein mann ein mann ein mann ein mann") for step in range(50, 401, 50)]
    assert training_checks.check_samples(logged(tmp_path, steps(falling()) + events)).verdict == "bad"


def test_unexpected_end_and_stuck_run(tmp_path: Path) -> None:
    log = logged(tmp_path, steps(falling()), end="")
    assert "without an end" in training_checks.check_running(log).message
    with locked(tmp_path):
        assert training_checks.check_running(log, now=1e9 + 410).verdict == "good"
        assert "stuck at step 400" in training_checks.check_running(log, now=1e9 + 4000).message


def test_repeated_steps_count_once_and_truncated_lines_are_skipped(tmp_path: Path) -> None:
    events = [*steps([9.0] * 20), {"event": "Resumed", "time": 1e9, "step": 10}, *steps([1.0] * 5, 11)]
    log = logged(tmp_path, events)
    assert log.step == 15
    assert log.losses[15] == 1.0
    with (tmp_path / "log.jsonl").open("a", encoding="utf-8") as stream:
        stream.write('{"event": "Step", "ti\n[1]\n')
    assert training_checks.check_log(read_log(tmp_path)).verdict == "warning"


def test_damaged_checkpoint(tmp_path: Path) -> None:
    for step in (1, 2):
        with atomic_folder(tmp_path / "checkpoints" / f"step-0000000{step}") as folder:
            (folder / "weights.safetensors").write_bytes(b"abc")
    (tmp_path / "checkpoints" / "step-00000002" / "weights.safetensors").write_bytes(b"abd")
    finding = training_checks.check_checkpoints(tmp_path)
    assert finding.verdict == "bad"
    assert "1 of 2" in finding.message
    assert "step-00000002" in finding.examples[0]


def test_numbers_that_are_too_large_are_faults_of_the_log(tmp_path: Path) -> None:
    prepared = {"event": "Prepared", "time": 1.0, "noun": "rows", "n_rows": math.inf, "dropped": {}}
    log = logged(tmp_path, [*steps([1.0, 10**400]), prepared | {"n_parameters": 1, "vocab_size": 1}])
    assert (list(log.losses), log.n_unreadable) == ([1], 1)
    assert list(training_checks.check_prepared(log)) == []
