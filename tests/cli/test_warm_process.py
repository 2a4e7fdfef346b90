"""A fork of the warm process behaves as a process that a user starts."""

from pathlib import Path

import pytest

from cli.conftest import Run, environment_of
from cli.warm_process import WarmProcess


@pytest.mark.parametrize(
    "words",
    [
        ("predict", "bundle"),
        ("predict", "bundle", "--n-best"),
        ("evaluate", "bundle", "lines.en", "lines.zh"),
        ("init", "lines.en", "lines.zh"),
        ("train", "nowhere.toml"),
        ("lab", "--help"),
        pytest.param(("predict", "nowhere"), marks=pytest.mark.proof),
        pytest.param(("quantize", "nowhere"), marks=pytest.mark.proof),
        pytest.param(("heads", "show", "nowhere"), marks=pytest.mark.proof),
        pytest.param(("lens", "nowhere"), marks=pytest.mark.proof),
        pytest.param(("walk", "bundle", "Two cats."), marks=pytest.mark.proof),
        pytest.param(("doctor", "bundle"), marks=pytest.mark.proof),
    ],
    ids=" ".join,
)
def test_output_and_exit_code_are_those_of_a_new_process(
    manyheads: Run, new_manyheads: Run, tmp_path: Path, bundle_folder: Path, words: tuple[str, ...]
) -> None:
    (tmp_path / "lines.en").write_text("Two cats are sleeping.\nWho is reading the book?\n" * 2, "utf-8")
    (tmp_path / "lines.zh").write_text("两只猫正在睡觉。\n谁正在读那本书？\n" * 2, "utf-8")
    forked, new = (run(*words, stdin="Two cats are sleeping.\n\n猫") for run in (manyheads, new_manyheads))
    assert (forked.returncode, forked.stdout, forked.stderr) == (new.returncode, new.stdout, new.stderr)
    assert new.stdout or new.stderr


def test_commands_are_independent_of_one_another(manyheads: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    english = manyheads("predict", "nowhere")
    monkeypatch.setenv("MANYHEADS_LANG", "zh")
    chinese = manyheads("predict", "--help")
    monkeypatch.delenv("MANYHEADS_LANG")
    assert chinese.stdout.startswith("用法：")
    again = manyheads("predict", "nowhere")
    assert (again.returncode, again.stdout, again.stderr) == (1, "", english.stderr)


def test_what_is_read_at_the_start_of_a_process_needs_a_new_one(warm_process: WarmProcess) -> None:
    same = warm_process.environment  # that of this process may have changed since
    assert warm_process.suits(same | {"MANYHEADS_CACHE": "x", "PATH": "/bin"})
    for change in ({"LANG": "xx_XX.UTF-8"}, {"PYTHONHASHSEED": "5"}, {"OMP_NUM_THREADS": "2"}):
        assert not warm_process.suits(same | change)


def test_variables_that_libraries_set_make_no_difference(
    warm_process: WarmProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise each command would take seconds from then on."""
    # scikit-learn, torch and our command line, called in this process
    for name in ("KMP_INIT_AT_FORK", "TORCHINDUCTOR_CACHE_DIR", "GOMP_SPINCOUNT", "TORCH_CPP_LOG_LEVEL", "LANGUAGE"):
        if name not in warm_process.environment:
            monkeypatch.setenv(name, "1")
    assert warm_process.suits(environment_of(1))


def test_standard_input_that_is_not_read_and_long_output(warm_process: WarmProcess, tmp_path: Path) -> None:
    done = warm_process.run(["--version"], b"line\n" * 100_000, tmp_path, environment_of(1))
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"manyheads, version")
