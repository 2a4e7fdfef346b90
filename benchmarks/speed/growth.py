"""How cost grows: one variable at a time is changed, and a power law is fitted to the seconds.

    make bench-growth                                     every curve, into benchmarks/speed/ (five minutes)
    make bench-growth ARGS="--curves length vocabulary --turns 3"

The model is small: 2 + 2 layers of width 128, 8 heads of width 16, vocab_size 4,000, batches of 32 sentences of 16
tokens. Each curve changes one variable: sentence length, batch size, vocab_size, layers per stack, heads kept in every
attention (the others are pruned), or sentence pairs in the corpus. Training measures one step of the training loop;
for the corpus curve, one epoch of a smaller model, including planning and making batches. Decoding is greedy with the
default engine and measures seconds per sentence; for the corpus curve, seconds for all sentences. One thread; CPU
seconds; sizes alternate, and the median is reported.

A power of 1 means proportional cost, 0 constant cost. Fixed costs lower the power at small sizes, so the power between
the two largest sizes is reported too.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import draw
import numpy as np
import torch
from draw_growth import growth_table
from frame import HERE, stamp, store

from manyheads.bench.decoding_speed import GREEDY, make_endless_model
from manyheads.data import make_batch, plan_batches
from manyheads.decode import Engine, EngineSelector, SpecialTokens
from manyheads.model import ModelSettings, Transformer
from manyheads.tasks.seq2seq import Seq2SeqSettings, Seq2SeqTrainingTask, TensorBatch
from manyheads.text.tokens.tokenizer import BOS, EOS, PAD, UNK
from manyheads.training import Trainer, TrainSettings

RESULT = HERE / "growth.json"
FIRST_WORD = 4
SPECIAL_TOKENS = SpecialTokens(bos=BOS, eos=EOS, pad=PAD, forbidden=(PAD, UNK, BOS))
MODEL = ModelSettings(
    vocab_size=4_000,
    width=128,
    feed_forward_width=256,
    n_heads=8,
    n_encoder_layers=2,
    n_decoder_layers=2,
    max_length=1100,
)
SMALLER = replace(
    MODEL, width=32, feed_forward_width=32, n_heads=2, n_encoder_layers=1, n_decoder_layers=1, vocab_size=500
)


@dataclass(frozen=True)
class Case:
    """One point of a curve: a model and the size of its data."""

    model: ModelSettings = MODEL
    length: int = 16
    batch: int = 32
    n_pairs: int = 0  # size of a whole corpus; 0: one batch instead


def keep_heads(count: int) -> ModelSettings:
    return replace(MODEL, kept_heads={name: tuple(range(count)) for name in MODEL.attention_names()})


CURVES: dict[str, tuple[Sequence[int], Callable[[int], Case]]] = {
    "length": ((8, 16, 32, 64, 128, 256, 512), lambda n: Case(length=n, batch=4)),
    "batch": ((1, 2, 4, 8, 16, 32, 64, 128), lambda n: Case(batch=n)),
    "vocabulary": ((1000, 2000, 4000, 8000, 16_000, 32_000), lambda n: Case(replace(MODEL, vocab_size=n))),
    "layers": ((1, 2, 3, 4, 6, 8), lambda n: Case(replace(MODEL, n_encoder_layers=n, n_decoder_layers=n))),
    "heads kept": ((1, 2, 3, 4, 6, 8), lambda n: Case(keep_heads(n))),
    "corpus": ((250, 500, 1000, 2000, 4000), lambda n: Case(SMALLER, n_pairs=n)),
}


class RandomIds:
    """A training task of random ids: one batch, or a corpus that is planned into batches."""

    def __init__(self, model: Transformer, case: Case) -> None:
        # Tokenizer and training data are not needed: there is no text.
        self.inner = Seq2SeqTrainingTask(model, None, Seq2SeqSettings(), None)
        self.case = case
        rng = np.random.default_rng(1)
        vocab_size = case.model.vocab_size
        count = case.n_pairs or case.batch
        lengths = rng.integers(8, 24, (count, 2)) if case.n_pairs else np.full((count, 2), case.length - 1)
        self.sides = [[rng.integers(FIRST_WORD, vocab_size, n) for n in column] for column in lengths.T]

    @property
    def lengths(self) -> np.ndarray:
        return np.array([[len(ids) + 1 for ids in side] for side in self.sides]).T

    def plan(self, epoch: int) -> list[Any]:
        budget = 1000 if self.case.n_pairs else int(self.lengths.sum())
        return plan_batches(self.lengths, budget, seed=1, epoch=epoch)

    def make(self, plan: Any, seed: int) -> TensorBatch:
        batch = make_batch(*([side[row] for row in plan.tolist()] for side in self.sides))
        tensors = (torch.from_numpy(ids) for ids in (batch.source, batch.target_input, batch.target_output))
        return TensorBatch(*tensors, batch.n_tokens)

    def loss(self, batch: TensorBatch, step: int) -> torch.Tensor:
        return self.inner.loss(batch, step)

    def describe(self, plan: Any) -> str:
        return "random ids"


class Training:
    """Measures the seconds of a step, or of an epoch of a corpus."""

    def __init__(self, case: Case) -> None:
        torch.manual_seed(1)
        model = Transformer(case.model)
        settings = TrainSettings(steps=10**6, learning_rate=1e-4, warmup=1)
        self.training_task = RandomIds(model, case)
        self.is_epoch = bool(case.n_pairs)
        self.steps = Trainer(model, self.training_task, settings, width=case.model.width, seed=1).run()
        next(self.steps)

    def measure(self) -> float:
        started = time.process_time()
        count = len(self.training_task.plan(0)) if self.is_epoch else 1
        for _ in range(count):
            next(self.steps)
        return time.process_time() - started


class Decoding:
    """Measures the seconds per sentence, or of a whole corpus."""

    def __init__(self, case: Case) -> None:
        self.engine: Engine = EngineSelector().select(make_endless_model(case.model), SPECIAL_TOKENS, GREEDY)
        self.sources = [[*ids.tolist(), EOS] for ids in RandomIds(Transformer(SMALLER), case).sides[0]]
        # Outputs are as long as an average source.
        self.settings = replace(GREEDY, max_new_tokens=round(np.mean([len(source) for source in self.sources])))
        self.share = 1 if case.n_pairs else len(self.sources)

    def measure(self) -> float:
        started = time.process_time()
        lengths = np.array([[len(source)] for source in self.sources])
        for rows in plan_batches(lengths, self.engine.max_batch_tokens, seed=0, epoch=0):
            self.engine.generate([self.sources[row] for row in rows.tolist()], self.settings, rows.tolist())
        return (time.process_time() - started) / self.share


def measure_curve(name: str, n_turns: int) -> Iterator[dict[str, Any]]:
    sizes, make = CURVES[name]
    for what, kind in (("training", Training), ("decoding", Decoding)):
        subjects = {size: kind(make(size)) for size in sizes}
        found: dict[int, list[float]] = {size: [] for size in sizes}
        for turn in range(1 + n_turns):  # the first is a warm-up
            for size, subject in subjects.items():
                seconds = subject.measure()
                if turn:
                    found[size].append(seconds)
        curve = {"curve": name, "what": what, "sizes": list(sizes), "cpu": [found[size] for size in sizes]}
        if isinstance(subjects[sizes[0]], Decoding):
            curve["engine"] = subjects[sizes[0]].engine.name
        summary = ", ".join(f"{size}: {1000 * median(found[size]):.2f} ms" for size in sizes)
        print(f"{name}, {what}: {summary}", file=sys.stderr, flush=True)
        yield curve


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--curves", nargs="+", choices=CURVES, default=list(CURVES))
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--keep-nothing", action="store_true", help="print the table, but write no files")
    given = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, [max(os.sched_getaffinity(0))])
    torch.set_num_threads(1)
    curves = [curve for name in given.curves for curve in measure_curve(name, given.turns)]
    record = {**stamp(), "n_turns": given.turns, "curves": curves}
    print(growth_table(record))
    if not given.keep_nothing:
        store(RESULT, "curves", record)
        draw.main()


if __name__ == "__main__":
    main()
