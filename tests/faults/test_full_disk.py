"""A full disk at every point of a save: nothing saved is damaged, one line reports it, the same command resumes."""

import errno
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from manyheads.bundle import Bundle
from manyheads.cli.init import init
from manyheads.cli.rendering.output import open_output
from manyheads.errors import CheckpointError, TrainingError
from manyheads.interop.ctranslate2_export import export_bundle
from manyheads.model import weights
from manyheads.run import Finished, Recipe, run
from manyheads.storage import atomic_write, verify_manifest
from manyheads.training import Checkpoints, Step

from faults.running import ForkedRun, differences, outcome, output_of, run_forked, write_recipe
from proposals.test_fitted_recipe import ESTIMATE
from training.doubling import make_trainer


class FaultyDisk:
    """Counts write operations; the one with number `fail_at` fails half-way, and so do all later ones."""

    def __init__(self, patch: pytest.MonkeyPatch, fail_at: int) -> None:
        self.left = fail_at
        self.is_full = False
        for name in ("mkdir", "rename", "replace", "fsync"):
            patch.setattr(os, name, self._failing(getattr(os, name)))
        patch.setattr(Path, "write_bytes", self._half_written(Path.write_bytes))
        patch.setattr(Path, "write_text", self._half_written(Path.write_text))
        patch.setattr(weights, "save_file", self._half_saved(weights.save_file))

    def _use(self) -> None:
        self.left -= 1
        self.is_full = self.is_full or self.left == 0

    def _failing(self, operation):  # type: ignore[no-untyped-def]
        def attempt(*arguments, **options):  # type: ignore[no-untyped-def]
            self._use()
            if self.is_full:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return operation(*arguments, **options)

        return attempt

    def _half_written(self, operation):  # type: ignore[no-untyped-def]
        def attempt(path, content, **options):  # type: ignore[no-untyped-def]
            self._use()
            operation(path, content[: len(content) // 2] if self.is_full else content, **options)
            if self.is_full:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        return attempt

    def _half_saved(self, operation):  # type: ignore[no-untyped-def]
        def attempt(tensors, path):  # type: ignore[no-untyped-def]
            self._use()
            operation(tensors, path)
            if self.is_full:
                os.truncate(path, path.stat().st_size // 2)
                raise weights.SafetensorError("Error while serializing: No space left on device (os error 28)")

        return attempt


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_failed_save_does_not_damage_earlier_checkpoints(tmp_path: Path) -> None:
    trainer = make_trainer(ema_decay=0.9, steps=3)
    for event in trainer.run():
        if event.step < 3:
            Checkpoints(tmp_path / "run", 2).save(trainer, snapshot=True)
    before = contents(tmp_path / "run")
    points = 0
    for point in range(1, 200):
        shutil.copytree(tmp_path / "run", tmp_path / "copy")
        with pytest.MonkeyPatch.context() as patch:
            disk = FaultyDisk(patch, point)
            try:
                Checkpoints(tmp_path / "copy", 2).save(trainer, snapshot=True)
            except OSError as error:
                assert error.errno == errno.ENOSPC
        after = contents(tmp_path / "copy")
        if not disk.is_full:
            break
        points += 1
        assert {name: after.get(name) for name in before} == before  # every earlier file is unchanged
        restored = make_trainer(ema_decay=0.9)
        assert Checkpoints(tmp_path / "copy", 2).restore(restored) == []
        assert restored.step in (2, 3)  # 3: only the sync of the folder failed, after the rename
        Checkpoints(tmp_path / "copy", 2).save(trainer, snapshot=True)  # the disk has space again
        assert contents(tmp_path / "copy") == {**after_all(trainer, tmp_path)}
        shutil.rmtree(tmp_path / "copy")
    assert points >= 20  # 2 folders; 6 files, their syncs, manifests and renames


def after_all(trainer, tmp_path: Path) -> dict[str, bytes]:  # type: ignore[no-untyped-def]
    """Return the contents of the folder if the save succeeds at once."""
    folder = tmp_path / "good"
    if not folder.exists():
        shutil.copytree(tmp_path / "run", folder)
        Checkpoints(folder, 2).save(trainer, snapshot=True)
    return contents(folder)


def test_atomic_write_leaves_the_old_or_the_new_content(tmp_path: Path) -> None:
    file = tmp_path / "recipe.toml"
    atomic_write(file, b"old")
    for point in range(1, 10):
        with pytest.MonkeyPatch.context() as patch:
            disk = FaultyDisk(patch, point)
            try:
                atomic_write(file, b"new and longer")
            except OSError as error:
                assert error.errno == errno.ENOSPC
        assert file.read_bytes() in (b"old", b"new and longer")
        if not disk.is_full:
            break
        assert [path.name for path in tmp_path.iterdir()] == ["recipe.toml"]
    assert point >= 4


def test_full_disk_is_reported_in_one_line_and_the_run_resumes(
    tmp_path: Path, recipe_table: Callable[..., dict[str, object]]
) -> None:
    recipe = Recipe.from_table(recipe_table())
    with pytest.MonkeyPatch.context() as patch, pytest.raises(TrainingError) as caught:
        for event in run(recipe, tmp_path / "run"):
            if isinstance(event, Step) and event.step == 4:
                FaultyDisk(patch, 9)
    assert str(caught.value) == (
        f"{tmp_path / 'run'}: the disk is full. Everything saved before is intact: free some space, then run the same "
        "command again to resume."
    )
    with (tmp_path / "run" / "log.jsonl").open("ab") as log:
        log.write('{"event": "Validated", "bleu": "né'.encode()[:-1])  # a line truncated by the full disk
    assert isinstance(list(run(recipe, tmp_path / "run"))[-1], Finished)
    assert b'n\xc3{"' not in (tmp_path / "run" / "log.jsonl").read_bytes()


@contextmanager
def limited_files(largest: int) -> Iterator[None]:
    """Let the system refuse to write files of more than `largest` bytes, as if the disk were full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


class TestCommands:
    """A command that cannot write its output leaves nothing behind that it does not name."""

    @pytest.mark.parametrize("n_characters", [500, 5_000, 500_000])
    @pytest.mark.parametrize("keep", [False, True])
    def test_output_file(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], n_characters: int, keep: bool
    ) -> None:
        out = tmp_path / "out.txt"
        out.write_text("old")
        with (  # small outputs fail when the file is closed, large ones while it is written
            limited_files(300),
            pytest.raises(OSError, match=str(out)) as caught,
            open_output(out, keep_partial=keep) as stream,
        ):
            stream.write("x" * n_characters)
        assert caught.value.filename == str(out)
        assert out.read_text() == "old"
        others = [path for path in tmp_path.iterdir() if path != out]
        printed = capsys.readouterr().err
        if keep:
            (kept,) = others
            assert kept.read_text() == "x" * 300
            assert printed == f"The output so far is in {kept}.\n"
        else:
            assert (others, printed) == ([], "")

    def test_empty_output_is_never_kept(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(KeyboardInterrupt), open_output(tmp_path / "out", keep_partial=True):
            raise KeyboardInterrupt
        assert (list(tmp_path.iterdir()), capsys.readouterr().err) == ([], "")

    def test_init(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("manyheads.proposals.cost_estimate.measure_cost", lambda recipe, survey, start: ESTIMATE)
        data, out = tmp_path / "rows.tsv", tmp_path / "recipe.toml"
        data.write_text("".join(f"a short text {n}\t{'good' if n % 2 else 'bad'}\n" for n in range(300)))
        with limited_files(200):
            done = CliRunner().invoke(init, [str(data), "-o", str(out)])
        assert isinstance(done.exception, OSError)
        assert done.exception.filename == str(out)
        assert [path.name for path in tmp_path.iterdir()] == ["rows.tsv"]

    def test_bundle(self, untrained: Bundle, tmp_path: Path) -> None:
        """As written by train, quantize, shortlist and heads prune; export writes such a folder, too."""
        for write in (untrained.save, partial(export_bundle, untrained)):
            with limited_files(1000), pytest.raises(OSError, match="model") as caught:
                write(tmp_path / "model")
            assert caught.value.filename == str(tmp_path / "model")
            assert list(tmp_path.iterdir()) == []

    def test_predict(self, bundle_folder: Path, tmp_path: Path) -> None:
        (tmp_path / "in.txt").write_text("a cat\n" * 100)
        words = ["predict", bundle_folder, tmp_path / "in.txt", "--greedy", "-o", tmp_path / "out.txt"]
        assert run_forked(words, tmp_path / "printed", largest_file=500) == 1
        (kept,) = tmp_path.glob("out.txt*")
        assert (tmp_path / "printed").read_text() == (
            f"The output so far is in {kept}.\n"
            f"Error: {tmp_path}/out.txt: the disk is full (File too large). Free some space, then run the same command "
            "again.\n"
        )
        assert kept.stat().st_size == 500


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_recipe(tmp_path_factory.mktemp("disk"))


@pytest.fixture(scope="module")
def whole(recipe: Path) -> dict[str, object]:
    assert ForkedRun(recipe, recipe.parent / "whole").wait() == 0
    return outcome(recipe.parent / "whole")


def check_checkpoints(folder: Path) -> None:
    for checkpoint in folder.glob("*/step-*"):
        verify_manifest(checkpoint, CheckpointError)


@pytest.mark.parametrize(
    "largest_file",
    [pytest.param(3_000, marks=pytest.mark.proof), 60_000, pytest.param(200_000, marks=pytest.mark.proof)],
)
def test_file_size_limit(recipe: Path, whole: dict[str, object], largest_file: int) -> None:
    """A limit set by the operating system, exceeded by the log, the weights or the optimizer state."""
    folder = recipe.parent / f"limit-{largest_file}"
    assert ForkedRun(recipe, folder, largest_file=largest_file).wait() == 1
    (line,) = [line for line in output_of(folder).splitlines() if line.startswith("Error")]
    assert "the disk is full" in line
    check_checkpoints(folder)
    assert ForkedRun(recipe, folder).wait() == 0, output_of(folder)
    assert differences(outcome(folder), whole) == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A filesystem of six megabytes; only root may mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=6m", "none", str(disk)]
    if not sys.platform.startswith("linux") or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small filesystem needs root on Linux")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def fill(disk: Path, free: int) -> Path:
    """Write a file that leaves `free` bytes of the disk free."""
    filler = disk / "filler"
    state = os.statvfs(disk)
    filler.write_bytes(bytes(max(0, state.f_bavail * state.f_frsize - free)))
    return filler


@pytest.mark.proof
def test_full_filesystem(recipe: Path, whole: dict[str, object], small_disk: Path) -> None:
    """With a different free space each time, the run fails in its text, its checkpoints, its log and its bundle."""
    folder = small_disk / "run"
    failed = 0
    for free in (0, 40, 120, 260, 420, 700, 900, 1100):
        filler = fill(small_disk, free * 1024)
        code = ForkedRun(recipe, folder).wait()
        output = (small_disk / "run.out").read_text()
        filler.unlink()
        check_checkpoints(folder)
        if code == 0:
            break
        failed += 1
        assert code == 1, output
        assert "Traceback" not in output
    assert failed >= 4
    assert ForkedRun(recipe, folder).wait() == 0, output_of(folder)
    assert differences(outcome(folder), whole) == []
