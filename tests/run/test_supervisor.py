"""`supervise`: the processes of a run on one machine, their deaths and restarts."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from manyheads.language import using
from manyheads.run.supervisor import supervise


def command(code: str) -> list[str]:
    header = "import os, signal, sys, time\nfrom pathlib import Path\nrank = int(os.environ['RANK'])\n"
    return [sys.executable, "-I", "-S", "-c", header + textwrap.dedent(code)]


def outcome(code: str, n_processes: int = 2, n_restarts: int = 3) -> tuple[int, list[str]]:
    lines: list[str] = []
    return supervise(command(code), n_processes, n_restarts, lines.append), lines


def test_variables_of_each_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("manyheads.run.supervisor.count_cores", lambda: 7)
    names = ("WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "OMP_NUM_THREADS", "MANYHEADS_SUPERVISOR")
    code, lines = outcome(f"Path({str(tmp_path)!r}, str(rank)).write_text(' '.join(os.environ[n] for n in {names}))", 3)
    assert (code, lines) == (0, [])
    written = [(tmp_path / str(rank)).read_text().split() for rank in range(3)]
    assert [fields[:3] for fields in written] == [["3", str(rank), "127.0.0.1"] for rank in range(3)]
    assert len({fields[3] for fields in written}) == 1  # the same port
    assert {tuple(fields[4:]) for fields in written} == {("2", str(os.getpid()))}


def test_a_killed_process_ends_the_others_and_all_are_restarted(tmp_path: Path) -> None:
    code, lines = outcome(
        f"""
        first = Path({str(tmp_path)!r}, f"started-{{rank}}")
        if first.exists():
            sys.exit(0)
        first.touch()
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(60)
        """
    )
    assert code == 0
    restarting = "Restarting all from the last checkpoint (3 more restarts allowed)."
    assert lines == [f"Process 1 of 2 was killed (SIGKILL). {restarting}"]


def test_restarts_are_limited_and_the_process_that_only_lost_another_is_not_named() -> None:
    code, lines = outcome("os.kill(os.getpid(), signal.SIGSEGV) if rank else sys.exit(75)", n_restarts=1)
    assert code == 75
    assert [line[:36] for line in lines] == ["Process 1 of 2 was killed (SIGSEGV)."] * 2
    assert "No restart is left" in lines[1]


@pytest.mark.parametrize("silent", [0, 1])
def test_a_process_that_is_lost_but_has_not_ended_is_named(silent: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("manyheads.run.supervisor._GRACE", 1.0)
    code, lines = outcome(f"os.kill(os.getpid(), signal.SIGSTOP) if rank == {silent} else sys.exit(75)", n_restarts=0)
    assert code == 75
    assert [line.split(". ")[0] for line in lines] == [f"Process {silent} of 2 does not answer"]
    with using("zh"):
        code, lines = outcome(f"time.sleep(60) if rank == {silent} else sys.exit(75)", n_restarts=0)
        assert lines[0].startswith(f"进程 {silent}（共 2 个）没有响应。")


def test_an_error_of_rank_0_is_not_repeated_and_not_restarted() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    assert outcome("sys.exit(1) if rank == 0 else time.sleep(60)") == (1, [])
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_rank_0_reports_the_error_of_another_process() -> None:
    assert outcome("sys.exit(1) if rank else (time.sleep(0.3), sys.exit(1))") == (1, [])


def test_a_bug_in_another_process_is_reported_with_its_last_line() -> None:
    code, lines = outcome("raise KeyError('lost') if rank else sys.exit(75)")
    assert code == 1
    assert lines == ["Process 1 of 2 ended with exit code 1: KeyError: 'lost'."]


def test_signals_go_to_rank_0_which_ends_the_others(tmp_path: Path) -> None:
    code = """
        if rank:
            signal.signal(signal.SIGINT, lambda *_: Path(OUT, "wrong").touch())
            Path(OUT, "ready-1").touch()
            while not Path(OUT, "stop").exists():
                time.sleep(0.01)
            sys.exit(0)
        def stop(*_):
            Path(OUT, "stop").touch()
            sys.exit(130)
        signal.signal(signal.SIGINT, stop)
        Path(OUT, "ready-0").touch()
        time.sleep(60)
        """.replace("OUT", repr(str(tmp_path)))
    words = command(code)
    start = f"import sys; from manyheads.run.supervisor import supervise; sys.exit(supervise({words!r}, 2, 3, print))"
    process = subprocess.Popen([sys.executable, "-c", start], stdout=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not (tmp_path / "ready-0").exists() or not (tmp_path / "ready-1").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert (process.returncode, output) == (130, b"")
    assert not (tmp_path / "wrong").exists()
