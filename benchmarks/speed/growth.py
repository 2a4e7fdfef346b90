"""How cost grows: one thing at a time is changed, and seconds are fitted by a power of it.

    make bench-growth                                     every curve, into benchmarks/speed/ (five minutes)
    make bench-growth ARGS="--curves length vocabulary --turns 3"

A small model (2 + 2 layers of width 128, 8 heads of 16, 4,000 words, sentences of 16 tokens, 32 of them together). Of
each curve one thing grows: the length of the sentences, how many there are together, the vocab_size, the layers of
either stack, the heads kept in every attention (the others are pruned away), the pairs of the corpus. Training is one
step, forward, backward and update, by our own loop; of the corpus, one epoch of a yet smaller model, with planning and
making its batches. Decoding is greedy, by the engine that is the default here; seconds are those of a sentence, but of
the corpus those of all of its lines. One thread; CPU seconds; points take turns, and the median counts.

A power of 1 is in proportion, 0 is no growth. Where a part does not grow (a fixed cost) it is lower than it will be
farther out, so the power between the two largest points is reported as well.
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
from manyheads.text.tokenizer import BOS, EOS, PAD, UNK
from manyheads.train import Trainer, TrainSettings

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
    """One point: a model, and what it is given."""

    model: ModelSettings = MODEL
    length: int = 16
    batch: int = 32
    n_pairs: int = 0  # a whole corpus of so many, instead of one batch


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


class Made:
    """A training task whose batches are there already, or are planned and made of a corpus."""

    def __init__(self, model: Transformer, case: Case) -> None:
        # Text and training data are for making batches of text, and here there is none.
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
        return "drawn ids"


class Training:
    """Seconds of a step, or of an epoch where there is a corpus."""

    def __init__(self, case: Case) -> None:
        torch.manual_seed(1)
        model = Transformer(case.model)
        how = TrainSettings(steps=10**6, learning_rate=1e-4, warmup=1)
        self.training_task = Made(model, case)
        self.is_epoch = bool(case.n_pairs)
        self.steps = Trainer(model, self.training_task, how, width=case.model.width, seed=1).run()
        next(self.steps)

    def measure(self) -> float:
        started = time.process_time()
        count = len(self.training_task.plan(0)) if self.is_epoch else 1
        for _ in range(count):
            next(self.steps)
        return time.process_time() - started


class Decoding:
    """Seconds of a sentence, or of a file where there is a corpus."""

    def __init__(self, case: Case) -> None:
        self.engine: Engine = EngineSelector().select(make_endless_model(case.model), SPECIAL_TOKENS, GREEDY)
        self.sources = [[*ids.tolist(), EOS] for ids in Made(Transformer(SMALLER), case).sides[0]]
        # An output is as long as an average source.
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
        for turn in range(1 + n_turns):  # the first does not count
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
