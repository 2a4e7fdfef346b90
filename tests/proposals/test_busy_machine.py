"""Estimates and training beside real busy loops. Half an hour of load on a small machine: `make proofs`."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from manyheads import corpora
from manyheads.cli import SPIN_COUNT
from manyheads.cores import count_cores

_LOOP = "import time\nend = time.time() + 600\nwhile time.time() < end: pass"  # ends by itself, come what may
_TRAIN = """
import sys, time, torch
torch.set_num_threads(2)
from manyheads.bench.training_speed import Sentences
from manyheads.model import ModelSettings, Transformer
from manyheads.tasks import Seq2Seq, Seq2SeqSettings, TrainingData
from manyheads.training import Trainer, TrainSettings

with Sentences.make() as sentences:
    settings = ModelSettings.preset("tiny", vocab_size=sentences.tokenizer.vocab_size)
    task = Seq2Seq(Transformer(settings), sentences.tokenizer, Seq2SeqSettings())
    data = task.training_task(TrainingData(sentences.encoded, 1500))
    schedule = TrainSettings(steps=10**6, batch_tokens=1500, learning_rate=1e-3, warmup=100)
    steps = Trainer(task.module, data, schedule, width=settings.width, seed=1).run()
    next(steps)
    print(flush=True)
    for _ in sys.stdin:
        started = time.perf_counter()
        n_tokens = 0
        while time.perf_counter() - started < 10:
            n_tokens += next(steps).n_tokens
        print(n_tokens / (time.perf_counter() - started), flush=True)
"""


@contextmanager
def busy_loops(number: int) -> Iterator[None]:
    loops = [subprocess.Popen([sys.executable, "-c", _LOOP]) for _ in range(number)]
    try:
        time.sleep(1)
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def plan(recipe: Path) -> dict[str, Any]:
    words = [sys.executable, "-m", "manyheads", "plan", str(recipe), "--json"]
    made: dict[str, Any] = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    return made


@pytest.mark.proof
def test_idle_time_is_the_same_beside_ten_busy_loops(tmp_path: Path) -> None:
    rows = corpora.pairs("en", "de", "train", 2000)
    (tmp_path / "a.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in rows), "utf-8")
    recipe = tmp_path / "recipe.toml"
    words = [sys.executable, "-m", "manyheads", "init", str(tmp_path / "a.tsv"), "-o", str(recipe)]
    subprocess.run(words, check=True, capture_output=True)
    before = recipe.read_bytes()
    idle = plan(recipe)
    with busy_loops(10):
        subprocess.run([*words, "--overwrite"], check=True, capture_output=True)
        busy = plan(recipe)
    assert recipe.read_bytes() == before
    assert busy["seconds"]["total"] == pytest.approx(idle["seconds"]["total"], rel=0.3)
    assert busy["slowdown"] > 0.5 * 10 / count_cores()


@pytest.mark.proof
@pytest.mark.skipif(sys.platform != "linux", reason="GNU OpenMP, whose threads spin, is that of Linux")
def test_two_threads_keep_half_of_their_fair_share_beside_ten_busy_loops() -> None:
    """Each of two threads would get c / 12 of c cores; beside loops of others, those count on both sides."""
    environment = os.environ | {"OMP_NUM_THREADS": "2", "GOMP_SPINCOUNT": str(SPIN_COUNT)}
    with subprocess.Popen(
        [sys.executable, "-c", _TRAIN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        worker.stdout.readline()
        print("go", file=worker.stdin, flush=True)
        alone = float(worker.stdout.readline())
        with busy_loops(10):
            print("go", file=worker.stdin, flush=True)
            beside = float(worker.stdout.readline())
        worker.stdin.close()
    share = min(1.0, count_cores() / 12)
    assert beside >= 0.5 * share * alone
