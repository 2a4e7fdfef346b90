"""`PartSearch`: the hypotheses of each part of the texts, from a first search and from others where it failed.

1. A hypothesis that ends in a loop: search without repeated n-grams.
2. One that lacks a span that a translation should repeat, or has a placeholder too often: search with a wide beam, and
   take the best without such faults, or else with the fewest.
3. One that still lacks a placeholder: search for hypotheses that have each placeholder as often as the source.

Searches 1 and 3 run in PyTorch for every engine, so that the outputs of all engines are the same.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from manyheads.data import plan_batches
from manyheads.decode import (
    NO_REPEAT_NGRAM,
    DecodeSettings,
    Engine,
    Hypothesis,
    TorchEngine,
    copying_beam,
    is_looping,
    n_extra,
    n_missing,
)
from manyheads.tasks.seq2seq.translation_parts import Part
from manyheads.tasks.task import Progress
from manyheads.text.tokenizer import EOS, Tokenizer

_WIDE_BEAM = 8
_EMPTY = Hypothesis((), 0.0, 0.0, finished=True)


@dataclass(frozen=True)
class PartSearch:
    """A search over the parts of some texts."""

    parts: Sequence[Part]
    encoded: Sequence[Sequence[int]]  # the token ids of each part
    streams: Sequence[int]  # the random stream of each part
    settings: DecodeSettings
    tokenizer: Tokenizer
    engine: Engine
    torch_engine: TorchEngine

    def run(self, done: Progress) -> tuple[dict[int, list[Hypothesis]], set[int]]:
        """Return the hypotheses of each part, and the parts for which a search ended in a loop."""
        found: dict[int, list[Hypothesis]] = {}
        for row, ids in enumerate(self.encoded):
            if not ids:  # nothing but what is copied
                found[row] = [_EMPTY] * self.settings.n_best
                done(row)
        for row, hypotheses in self._decode([row for row, ids in enumerate(self.encoded) if ids], self.settings):
            found[row] = hypotheses
            done(row)
        looping = {row for row, (best, *_) in found.items() if is_looping(best.ids, self.encoded[row])}
        if self.settings.repetition_guard:
            guarded = replace(self.settings, no_repeat_ngram=NO_REPEAT_NGRAM)
            found |= self._finished(sorted(looping), guarded)
        if self.settings.copy_guard and self.settings.method == "beam" and self.settings.beam > 1:
            faulty = [row for row, (best, *_) in found.items() if self._n_faults(row, best)]
            found |= self._wide([row for row in faulty if row not in looping])
            found |= self._copying([row for row in faulty if self._lacks_placeholder(row, found[row][0])], looping)
        return found, looping | {row for row, (best, *_) in found.items() if is_looping(best.ids, self.encoded[row])}

    def text(self, row: int, hypothesis: Hypothesis) -> str:
        """The translation of a part that a hypothesis stands for."""
        return self.parts[row].finish(self.tokenizer.decode(hypothesis.ids))

    def _wide(self, rows: Sequence[int]) -> dict[int, list[Hypothesis]]:
        """The hypotheses of a wide beam, those with the fewest faults first."""
        beam = max(self.settings.beam, _WIDE_BEAM)
        found = {}
        for row, hypotheses in self._decode(rows, replace(self.settings, beam=beam, n_best=beam)):
            ranked = sorted(hypotheses, key=lambda one, row=row: self._n_faults(row, one))  # type: ignore[misc]
            found[row] = ranked[: self.settings.n_best]
        return found

    def _copying(self, rows: Sequence[int], looping: set[int]) -> dict[int, list[Hypothesis]]:
        """Finished hypotheses that copy every placeholder; those of parts that looped do not repeat n-grams."""
        copied = self.tokenizer.placeholder_ids
        found: dict[int, list[Hypothesis]] = {}

        def kind(row: int) -> tuple[int, bool]:
            needed = copying_beam(self.encoded[row], copied)
            return max(self.settings.beam, _WIDE_BEAM, needed), self.settings.repetition_guard and row in looping

        # The beam depends on the part alone, so that a text has the same translation in any batch.
        for (beam, is_guarded), group in groupby(sorted(rows, key=kind), kind):
            settings = replace(self.settings, beam=beam)
            if is_guarded:
                settings = replace(settings, no_repeat_ngram=NO_REPEAT_NGRAM)
            found |= self._finished(list(group), settings, copied)
        return found

    def _finished(
        self, rows: Sequence[int], settings: DecodeSettings, copied: Sequence[int] = ()
    ) -> dict[int, list[Hypothesis]]:
        """The hypotheses of the parts for which a search in PyTorch ends."""
        found = {}
        for chosen, sources, streams in self._batches(rows, self.torch_engine):
            for row, hypotheses in zip(
                chosen, self.torch_engine.generate(sources, settings, streams, copied), strict=True
            ):
                if hypotheses[0].finished:
                    found[row] = hypotheses
        return found

    def _decode(self, rows: Sequence[int], settings: DecodeSettings) -> Iterator[tuple[int, list[Hypothesis]]]:
        for chosen, sources, streams in self._batches(rows, self.engine):
            yield from zip(chosen, self.engine.generate(sources, settings, streams), strict=True)

    def _batches(self, rows: Sequence[int], engine: Engine) -> Iterator[tuple[list[int], list[list[int]], list[int]]]:
        """The rows, sources and streams of each batch; parts of similar length are decoded together."""
        lengths = np.array([[len(self.encoded[row]) + 1] for row in rows], dtype=np.int64).reshape(-1, 1)
        for batch in plan_batches(lengths, engine.max_batch_tokens, seed=0, epoch=0):
            chosen = [rows[index] for index in batch.tolist()]
            yield chosen, [[*self.encoded[row], EOS] for row in chosen], [self.streams[row] for row in chosen]

    def _lacks_placeholder(self, row: int, hypothesis: Hypothesis) -> bool:
        copied = self.tokenizer.placeholder_ids if self.parts[row].assigned else ()
        return n_missing(hypothesis.ids, self.encoded[row], copied) > 0

    def _n_faults(self, row: int, hypothesis: Hypothesis) -> int:
        """How many spans and placeholders a hypothesis lacks, and how many placeholders it has too often."""
        part, source = self.parts[row], self.encoded[row]
        copied = self.tokenizer.placeholder_ids if part.assigned else ()
        n_lost = len(part.missing(self.text(row, hypothesis)))
        return n_lost + n_missing(hypothesis.ids, source, copied) + n_extra(hypothesis.ids, source, copied)
