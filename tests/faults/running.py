"""A small run that uses every source of randomness, in a separate process that tests can kill.

`ForkedRun` forks a process that has imported everything already, which saves seconds of start-up. `SpawnedRun` starts
the command as a user does.
"""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from manyheads import corpora
from manyheads.settings import to_toml

STEPS = 16


def write_recipe(folder: Path) -> Path:
    """Write a recipe of about 50,000 parameters on a part of the built-in corpus; an epoch is about four steps."""
    folder.mkdir(parents=True, exist_ok=True)
    data: dict[str, list[str]] = {}
    for name, split, count in (("train", "train", 60), ("valid", "valid", 3), ("test", "test", 3)):
        pairs = list(corpora.pairs("en", "de", split, count))
        data[name] = [str(folder / f"{name}.{code}") for code in ("en", "de")]
        for side, file in enumerate(data[name]):
            Path(file).write_text("".join(f"{pair[side]}\n" for pair in pairs), "utf-8")
    table = {
        "data": data,
        "tokenizer": {"vocab_size": 600, "sampling": 0.2},
        "model": {
            "width": 32,
            "n_heads": 2,
            "n_encoder_layers": 1,
            "n_decoder_layers": 1,
            "dropout": 0.2,
            "feed_forward_width": 64,
            "max_length": 48,
        },
        "task": {"consistency": 2.0, "consistency_after": STEPS // 2},
        "train": {
            "steps": STEPS,
            "batch_tokens": 150,
            "accumulation_steps": 2,
            "warmup": 4,
            "learning_rate": 0.01,
            "validate_every": 3,
            "save_every": 2,
            "average_snapshots": 3,
            "ema_decay": 0.9,
        },
        "decode": {"method": "greedy", "max_new_tokens": 2},
    }
    (folder / "recipe.toml").write_text(to_toml(table), "utf-8")
    return folder / "recipe.toml"


def cache_of(folder: Path) -> Path:
    """Return the cache of a run; each run has its own, so that each prepares its text."""
    return folder.with_name(f"{folder.name}-cache")


# The first optimizer imports torch._dynamo, which takes longer than the training of a small run.
_PRELOADED = ["manyheads.cli.rendering.progress", "manyheads.cli.train", "manyheads.run", "torch._dynamo"]


class RunProcess(Protocol):
    """A run in another process."""

    def is_finished(self) -> bool: ...

    def kill(self) -> None: ...

    def wait(self) -> int:
        """Return its exit code."""


class SpawnedRun:
    """`python -m manyheads train`, as a user starts it; `forgets` names what `broken_restore` forgets, if anything."""

    def __init__(self, recipe: Path, folder: Path, forgets: str = "") -> None:
        program = ["faults.broken_restore", forgets] if forgets else ["manyheads"]
        with Path(f"{folder}.out").open("w") as out:
            self._process = subprocess.Popen(
                [sys.executable, "-m", *program, "train", str(recipe), "-o", str(folder), "--plain"],
                stdout=out,
                stderr=out,
                env=os.environ | {"OMP_NUM_THREADS": "1", "MANYHEADS_CACHE": str(cache_of(folder))},
            )

    def is_finished(self) -> bool:
        return self._process.poll() is not None

    def kill(self) -> None:
        self._process.kill()

    def wait(self) -> int:
        return self._process.wait(timeout=900)  # this process may be paused together with it


def run_forked(words: Sequence[object], out: Path, *, largest_file: int) -> int:
    """Run a command in a process that may not write larger files, and return its exit code; `out` gets its output."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    command = ["manyheads", *map(str, words)]
    process = context.Process(target=_run_command, args=(command, str(out), 0, largest_file))
    process.start()
    process.join(timeout=120)
    assert process.exitcode is not None
    return process.exitcode


class ForkedRun:
    """The same command, forked from a process that has imported everything.

    `die_at` is the number of the file operation before which an audit hook kills the process. `largest_file` is the
    maximum size of a file in bytes.
    """

    def __init__(self, recipe: Path, folder: Path, *, die_at: int = 0, largest_file: int = 0) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(_PRELOADED)
        command = ["manyheads", "train", str(recipe), "-o", str(folder), "--plain"]
        self._process = context.Process(target=_run_command, args=(command, f"{folder}.out", die_at, largest_file))
        self._process.start()

    def is_finished(self) -> bool:
        return not self._process.is_alive()

    def kill(self) -> None:
        self._process.kill()

    def wait(self) -> int:
        self._process.join(timeout=120)
        assert self._process.exitcode is not None
        return self._process.exitcode


def _run_command(command: Sequence[str], out: str, die_at: int, largest_file: int) -> None:
    import torch

    from manyheads.cli import main

    torch.set_num_threads(1)
    stream = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(stream, 1)
    os.dup2(stream, 2)
    sys.argv = list(command)
    os.environ["MANYHEADS_CACHE"] = str(cache_of(Path(command[command.index("-o") + 1])))
    if largest_file:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
    if die_at:
        _die_at(die_at, command[command.index("-o") + 1])
    main()


def _die_at(operation: int, folder: str) -> None:
    """Kill this process by SIGKILL just before this file operation in the run folder."""
    left = operation
    kinds = {"open", "os.rename", "os.mkdir", "os.rmdir", "os.remove", "os.chmod", "shutil.rmtree", "tempfile.mkdtemp"}

    def count(kind: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        if kind in kinds and str(arguments[0]).startswith(folder):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)


def entries(folder: Path) -> list[dict[str, object]]:
    """Return the entries of a run's log, without an unfinished last line."""
    log = folder / "log.jsonl"
    lines = log.read_text("utf-8", "replace").split("\n")[:-1] if log.exists() else []
    return [json.loads(line) for line in lines]


def outcome(folder: Path) -> dict[str, object]:
    """Return everything that must not depend on interruptions, by name."""
    newest = sorted((folder / "checkpoints").glob("step-????????"))[-1]
    files = [path for part in (folder / "bundle", newest) for path in sorted(part.iterdir())]
    results: dict[str, object] = {str(path.relative_to(folder)): path.read_bytes() for path in files}
    for entry in entries(folder):
        if entry["event"] == "Step":
            results[f"loss {entry['step']}"] = (entry["loss"], entry["gradient_norm"], entry["epoch"])
        if entry["event"] == "Validated":
            results[f"validation {entry['step']}"] = (entry["score"], entry["best"], entry["samples"])
    return results


def differences(one: dict[str, object], other: dict[str, object]) -> list[str]:
    """Return the names of results that are not identical."""
    return sorted(key for key in {*one, *other} if one.get(key) != other.get(key))


def output_of(folder: Path) -> str:
    """Return the output of the last command."""
    return Path(f"{folder}.out").read_text("utf-8")
