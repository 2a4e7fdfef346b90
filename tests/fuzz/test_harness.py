"""The harness finds planted bugs, and a short run of every target finds none."""

import time
from pathlib import Path
from random import Random

import pytest

from fuzz import harness
from fuzz.harness import Limits, all_targets, attempt, load_target, run_target

QUICK, SECONDS = 150, 1.0  # inputs and time of each target in the test suite; `make fuzz` does more


@pytest.mark.parametrize(
    ("bug", "title"),
    [
        ("raises", "ZeroDivisionError at planted.py:*"),
        ("exits", "SystemExit at planted.py:*"),
        ("hangs", "hangs for more than 2 s"),
        ("dies", "dies with SIGSEGV"),
        ("grows", "uses more than 600 MB"),
        ("floods", "MessageTooLongError at harness.py:*"),
    ],
)
def test_planted_bug_is_found(bug: str, title: str) -> None:
    limits = Limits(seconds=2.0) if bug == "hangs" else Limits(megabytes=600)
    result = run_target(bug, "planted", 40, limits=limits)
    (finding,) = result.findings.values()
    assert finding.title.startswith(title.removesuffix("*"))
    assert result.n_inputs == 40
    # The other inputs of a worker that failed are done all the same.
    numbers = [Random(f"{bug} 0 {number}").random() for number in range(40)]
    assert finding.count == sum(number < 0.1 for number in numbers) > 0
    assert finding.number == next(index for index, number in enumerate(numbers) if number < 0.1)
    assert result.n_accepted == sum(number >= 0.4 for number in numbers)


def test_inputs_are_counted_if_nothing_is_found() -> None:
    result = run_target("none", "planted", 500)
    assert (result.n_inputs, result.n_findings) == (500, 0)
    assert 0 < result.n_refused < result.n_accepted
    assert 1 < result.peak_megabytes < 1000


def test_time_limit_ends_a_run() -> None:
    result = run_target("none", "planted", 10**9, seconds=0.5)
    assert 0 < result.n_inputs < 10**9
    assert result.seconds < 20


def test_finding_is_saved_with_the_command_that_replays_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(harness, "MODULES", ("planted",))
    assert harness.main(["--target", "none,raises", "--inputs", "30", "--seed", "7", "--record", "fuzz.md"]) == 1
    (saved,) = Path("build/fuzz").iterdir()
    replay, _, details = saved.read_text("utf-8").partition("\n")
    assert replay in capsys.readouterr().out
    assert "ZeroDivisionError" in details
    number = replay.rpartition("=")[2]
    assert replay == f"make fuzz TARGET=raises SEED=7 CASE={number}"
    assert saved.name == f"raises-7-{number}.txt"
    assert harness.main(["--target", "raises", "--seed", "7", "--case", number]) == 1
    assert "ZeroDivisionError" in capsys.readouterr().err
    assert "| raises | 30 |" in (tmp_path / "fuzz.md").read_text("utf-8")


# The tests of the native engine have their own short run: decode/test_native_fuzz.py.
@pytest.mark.parametrize("name", [name for name, module in all_targets().items() if module != "native"])
def test_short_run_finds_nothing(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    function = load_target(name, all_targets()[name])
    outcomes: list[bool] = []
    started = time.monotonic()
    while len(outcomes) < QUICK and time.monotonic() - started < SECONDS:
        outcomes.append(attempt(function, name, 0, len(outcomes)))
    # A target that refuses or accepts everything tests little.
    assert {*outcomes} == {True, False} or len(outcomes) < QUICK
