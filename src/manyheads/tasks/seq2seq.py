"""Sequence to sequence: one text in, another out. Translation first of all."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int
from numpy.typing import NDArray
from torch import Tensor

from manyheads.data import PairBatch, Pairs, choose_examples, pad, plan_batches
from manyheads.decode import DecodeSettings, generate
from manyheads.errors import DataError
from manyheads.metrics import Score, bleu, chrf, ter, ter_applies
from manyheads.model import Transformer, projected_loss
from manyheads.settings import misfits, refuse
from manyheads.text.tokenizer import BEGIN, END, PAD, UNKNOWN, Tokenizer

_LANGUAGE_CODE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8})*")
_TOKENS_AT_ONCE = 4096  # padded source tokens a decoding batch may hold


@dataclass(frozen=True, kw_only=True)
class Seq2SeqSettings:
    """Which languages, and how sure of itself the model may become."""

    source_language: str = ""
    target_language: str = ""
    smoothing: float = 0.1  # ε of label smoothing; beyond 0.9 the right word would be the least wanted one
    consistency: float = 0.0  # R-Drop's α: how much two passes with different dropout have to agree; 0: one pass
    consistency_after: int = 0  # the step after which they have to: the second pass costs as much as the first

    def __post_init__(self) -> None:
        faults = misfits(self, "task.")
        if not faults and not 0.0 <= self.smoothing <= 0.9:
            faults.append(f"task.smoothing = {self.smoothing} must be at least 0 and at most 0.9.")
        if not faults and not 0.0 <= self.consistency < math.inf:
            faults.append(f"task.consistency = {self.consistency} must be at least 0 and finite, like 5.0.")
        if not faults and self.consistency_after < 0:
            faults.append(f"task.consistency_after = {self.consistency_after} must be at least 0.")
        if not faults:
            faults += [
                f'task.{name} = "{code}" should be a language code, like "en", "zh" or "pt-BR".'
                for name, code in (("source_language", self.source_language), ("target_language", self.target_language))
                if code and not _LANGUAGE_CODE.fullmatch(code)
            ]
        refuse(faults)


@dataclass(frozen=True)
class Translation:
    """One candidate for one input."""

    text: str
    log_probability: float
    score: float
    finished: bool  # False: it was cut off at the maximum length


@dataclass(frozen=True)
class TensorBatch:
    """A `PairBatch` on the model's device."""

    source: Int[Tensor, "B S"]
    target_read: Int[Tensor, "B T"]
    target_written: Int[Tensor, "B T"]
    n_tokens: int

    def twice(self) -> "TensorBatch":
        """Each row again, below all the others; it still counts once."""
        source, read, written = (torch.cat([ids, ids]) for ids in (self.source, self.target_read, self.target_written))
        return TensorBatch(source, read, written, self.n_tokens)


@dataclass(frozen=True)
class Seq2SeqLesson:
    """What the training loop sees of this task."""

    model: Transformer
    pairs: Pairs
    tokenizer: Tokenizer
    settings: Seq2SeqSettings
    batch_tokens: int
    sampling: float
    seed: int
    boundaries: Sequence[int] = ()  # where each of several corpora begins among the pairs, and where the last ends
    weights: Sequence[float] = ()  # how often their pairs come in an epoch; without any, all come once

    def plan(self, epoch: int) -> list[NDArray[np.int64]]:
        """Batches of like lengths, as indices."""
        chosen = choose_examples(self.boundaries, self.weights, seed=self.seed, epoch=epoch)
        return plan_batches(self.pairs.lengths, self.batch_tokens, seed=self.seed, epoch=epoch, chosen=chosen)

    def make(self, plan: NDArray[np.int64], seed: int) -> TensorBatch:
        """One batch, its pieces sampled anew where the recipe asks for it."""
        if self.sampling == 0.0:
            return self._to_tensors(self.pairs.batch(plan))
        return self._to_tensors(
            self.pairs.sampled_batch(
                plan,
                self.tokenizer,
                strength=self.sampling,
                seed=seed,
                max_length=self.model.settings.max_length,
            )
        )

    def loss(self, batch: TensorBatch, step: int) -> Tensor:
        """Label-smoothed cross-entropy per real target token, and R-Drop's term where the settings want it.

        Padded places are never even projected.
        """
        has_to_agree = self.settings.consistency > 0 and step > self.settings.consistency_after
        passes = batch.twice() if has_to_agree else batch
        hidden = self.model.hidden(
            passes.source,
            passes.target_read,
            source_is_real=passes.source != PAD,
            target_is_real=passes.target_read != PAD,
        )
        is_real = batch.target_written != PAD
        return projected_loss(
            hidden.unflatten(0, (-1, len(is_real)))[:, is_real],
            self.model.output.weight,
            batch.target_written[is_real],
            self.settings.smoothing,
            self.settings.consistency,
        )

    def describe(self, plan: NDArray[np.int64]) -> str:
        """How many pairs a batch has, and its first three."""
        texts = [[_shortened(self.pairs.text(side, row)) for side in (0, 1)] for row in plan[:3].tolist()]
        told = ", ".join(f"“{source}” → “{target}”" for source, target in texts)
        return f"{len(plan)} pairs, {told}{' …' if len(plan) > 3 else ''}"

    def _to_tensors(self, batch: PairBatch) -> TensorBatch:
        device = self.model.output.weight.device
        source, read, written = (
            torch.from_numpy(ids).to(device) for ids in (batch.source, batch.target_read, batch.target_written)
        )
        return TensorBatch(source, read, written, batch.n_tokens)


@dataclass(frozen=True)
class Seq2Seq:
    """A trained model of this task, with text on both ends."""

    model: Transformer
    tokenizer: Tokenizer
    settings: Seq2SeqSettings

    @property
    def limit(self) -> int:
        """The longest text it reads, in pieces: one place is for END."""
        return self.model.settings.max_length - 1

    def fits(self, text: str) -> bool:
        """Whether a text is short enough for the model."""
        return len(self.tokenizer.encode(text)) <= self.limit

    def encode(self, text: str, where: str) -> list[int]:
        """The pieces of one input; one too long for the model is an error that says where, never cut short."""
        ids = self.tokenizer.encode(text)
        if len(ids) > self.limit:
            raise DataError(f"{where} has {len(ids):,} pieces; this model reads at most {self.limit:,}. Split it up.")
        return ids

    def translate(
        self, texts: Sequence[str], settings: DecodeSettings, first: int = 0
    ) -> Iterator[tuple[int, list[Translation]]]:
        """Yield (index, candidates, best first) for each text, in whatever order they are done.

        Texts of like length are decoded together. A blank text gives blank candidates. `first` is the number of
        the first text where these are a part of many: samples are drawn by a text's number.
        """
        encoded = [
            self.encode(text, f"text {number}") if text.strip() else []
            for number, text in enumerate(texts, start=first + 1)
        ]
        for index, ids in enumerate(encoded):
            if not ids:
                yield index, [Translation("", 0.0, 0.0, finished=True)] * settings.n_best
        wanted = np.array([index for index, ids in enumerate(encoded) if ids], dtype=np.int64)
        lengths = np.array([[len(encoded[index]) + 1] for index in wanted], dtype=np.int64).reshape(-1, 1)
        for batch in plan_batches(lengths, _TOKENS_AT_ONCE, seed=0, epoch=0):
            rows = wanted[batch].tolist()
            streams = [first + row for row in rows]
            yield from zip(rows, self._decode([encoded[row] for row in rows], streams, settings), strict=True)

    def answers(self, texts: Sequence[str], settings: DecodeSettings, first: int = 0) -> list[list[Translation]]:
        """What `translate` yields, in the order of the texts."""
        found = dict(self.translate(texts, settings, first))
        return [found[index] for index in range(len(texts))]

    def score(self, hypotheses: Sequence[str], references: Sequence[str]) -> list[Score]:
        """BLEU, chrF and, where words can be told apart, TER, with their intervals and signatures."""
        language = self.settings.target_language
        scores = [bleu(hypotheses, references, language), chrf(hypotheses, references)]
        return [*scores, ter(hypotheses, references, language)] if ter_applies(language) else scores

    def _decode(
        self, encoded: Sequence[Sequence[int]], streams: Sequence[int], settings: DecodeSettings
    ) -> list[list[Translation]]:
        source: Int[Tensor, "B S"] = torch.from_numpy(pad(encoded, after=END)).to(self.model.output.weight.device)
        is_real: Bool[Tensor, "B S"] = source != PAD
        found = generate(
            self.model,
            source,
            is_real,
            begin=BEGIN,
            end=END,
            never=(PAD, UNKNOWN, BEGIN),
            settings=settings,
            streams=streams,
        )
        return [
            [
                Translation(self.tokenizer.decode(best.ids), best.log_probability, best.score, best.finished)
                for best in candidates
            ]
            for candidates in found
        ]


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:59]}…"
