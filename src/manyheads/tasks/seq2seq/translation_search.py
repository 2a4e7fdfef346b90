"""How a translation is searched: `PartSearch`, the length penalty of beam search, and the confidence in what was found.

`PartSearch` finds the hypotheses of each part of the texts, with a first search and with others where it failed:

1. A hypothesis that ends in a loop: search without repeated n-grams.
2. One that lacks a span that a translation should repeat, or has a placeholder too often: search with a wide beam, and
   take the best without such faults, or else with the fewest.
3. One that still lacks a placeholder: search for hypotheses that have each placeholder as often as the source.
4. One that lacks a term that the options of its text require: search for hypotheses that have all of them.

Searches 1, 3 and 4 and those with a prefix run in PyTorch for every engine, so that the outputs of all engines are the
same.

Beam search prefers short hypotheses, since every token lowers the log-probability. How much the length must count
depends on the model and the data: with too small a penalty, a translation of one word may win; with too large a one,
a translation that repeats itself. The penalty is therefore chosen on validation rows.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Any, TypeVar

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
from manyheads.metrics import Tally
from manyheads.tasks.seq2seq.translation_parts import Part
from manyheads.tasks.task import DecodingChoice, Progress
from manyheads.text.terms.phrases import Phrases
from manyheads.text.tokens.tokenizer import EOS, Tokenizer

_WIDE_BEAM = 8
_BEAMS_PER_LEVEL = 2  # of the search for terms
_MAX_BEAM = 64
_MARGIN = 2  # tokens, EOS included, that a hypothesis with terms may be longer than the best one and the terms
_WIDENED = 4  # times as many beams where that search does not end
_WIDEST_BEAM = 256


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
                found[row] = [self._empty(row)] * self.settings.n_best
                done(row)
        for row, hypotheses in self._decode([row for row, ids in enumerate(self.encoded) if ids], self.settings):
            found[row] = hypotheses
            done(row)
        looping, first = self._looping(found), dict(found)
        if looping and self.settings.repetition_guard:
            guarded = replace(self.settings, no_repeat_ngram=NO_REPEAT_NGRAM)
            found |= self._finished(sorted(looping), guarded)
        if self.settings.copy_guard and self.settings.method == "beam" and self.settings.beam > 1:
            faulty = [row for row, (best, *_) in found.items() if self._n_faults(row, best)]
            found |= self._wide([row for row in faulty if row not in looping])
            free = [row for row in faulty if not self.parts[row].has_requirements]
            found |= self._copying([row for row in free if self._lacks_placeholder(row, found[row][0])], looping)
        found |= self._with_terms(found, looping)
        changed = {row: hypotheses for row, hypotheses in found.items() if hypotheses is not first[row]}
        return found, looping | self._looping(changed)

    def lacking(self, row: int, hypothesis: Hypothesis) -> list[str]:
        """Return the required terms and placeholders that a hypothesis lacks."""
        if row not in self._requirements or not self.encoded[row]:
            return []
        phrases = self._requirements[row]
        return list(phrases.missing(phrases.after(hypothesis.ids)))

    def text(self, row: int, hypothesis: Hypothesis) -> str:
        """The translation of a part that a hypothesis stands for."""
        return self.parts[row].finish(self.tokenizer.decode(hypothesis.ids))

    def _wide(self, rows: Sequence[int]) -> dict[int, list[Hypothesis]]:
        """The hypotheses of a wide beam, those with the fewest faults first."""
        if not rows:
            return {}
        beam = max(self.settings.beam, _WIDE_BEAM)
        found = {}
        for row, hypotheses in self._decode(rows, replace(self.settings, beam=beam, n_best=beam)):
            ranked = sorted(hypotheses, key=lambda hypothesis, row=row: self._n_faults(row, hypothesis))  # type: ignore[misc]
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

    def _with_terms(self, found: Mapping[int, list[Hypothesis]], looping: set[int]) -> dict[int, list[Hypothesis]]:
        """Hypotheses with all that is required, for the parts of which one lacks something."""
        rows = [row for row in self._requirements if any(self.lacking(row, hypothesis) for hypothesis in found[row])]
        rows = [row for row in rows if self._has_room(row)]
        results: dict[int, list[Hypothesis]] = {}
        guarded = set(looping) if self.settings.repetition_guard else set()
        widened = 1
        while rows and widened <= _WIDENED:
            for row in rows:
                self._requirements[row].max_length = self._max_length(row, found[row][0]) if widened == 1 else None
            searched = self._search_terms(rows, guarded, widened)
            for row in rows:
                good = {
                    hypothesis.ids: hypothesis
                    for hypothesis in (*searched.get(row, ()), *found[row])
                    if not self.lacking(row, hypothesis)
                }
                if good:
                    ranked = sorted(
                        good.values(), key=lambda hypothesis: (hypothesis.finished, hypothesis.score), reverse=True
                    )
                    results[row] = ranked[: self.settings.n_best]
            rows, widened = [row for row in rows if row not in results], widened * _WIDENED
        again = self._looping(results) - guarded if self.settings.repetition_guard else set()
        return results | self._search_terms(sorted(again), again, 1)

    def _has_room(self, row: int) -> bool:
        """Whether the required terms are shorter than the longest output."""
        limits = [self.torch_engine.model.settings.max_length, self.settings.max_new_tokens]
        return self._requirements[row].n_needed < min(limit for limit in limits if limit is not None)

    def _max_length(self, row: int, best: Hypothesis) -> int | None:
        """The maximum length of a hypothesis with terms: one that rambles on is worse than one that is improbable."""
        if not best.finished or is_looping(best.ids, self.encoded[row]):
            return None
        return len(best.ids) + self._requirements[row].n_tokens + _MARGIN

    def _search_terms(self, rows: Sequence[int], guarded: set[int], widened: int) -> dict[int, list[Hypothesis]]:
        """Finished hypotheses with all that is required, of parts of the same beam together."""
        found: dict[int, list[Hypothesis]] = {}

        def kind(row: int) -> tuple[int, bool]:
            needed = min(_MAX_BEAM, _BEAMS_PER_LEVEL * (1 + self._requirements[row].n_levels))
            return max(self.settings.beam, _WIDE_BEAM, needed), row in guarded

        # As in `_copying`, the beam depends on the part alone.
        for (beam, is_guarded), group in groupby(sorted(rows, key=kind), kind):
            settings = replace(self.settings, method="beam", beam=min(max(_WIDEST_BEAM, beam), widened * beam))
            if is_guarded:
                settings = replace(settings, no_repeat_ngram=NO_REPEAT_NGRAM)
            found |= self._constrained(list(group), settings, self._requirements)
        return {row: hypotheses for row, hypotheses in found.items() if hypotheses[0].finished}

    def _finished(
        self, rows: Sequence[int], settings: DecodeSettings, copied: Sequence[int] = ()
    ) -> dict[int, list[Hypothesis]]:
        """The hypotheses of the parts for which a search in PyTorch ends."""
        found = self._constrained([row for row in rows if row in self._prefixes], settings, self._prefixes)
        for chosen, sources, streams in self._batches(
            [row for row in rows if row not in self._prefixes], self.torch_engine
        ):
            found |= dict(zip(chosen, self.torch_engine.generate(sources, settings, streams, copied), strict=True))
        return {row: hypotheses for row, hypotheses in found.items() if hypotheses[0].finished}

    def _decode(self, rows: Sequence[int], settings: DecodeSettings) -> Iterator[tuple[int, list[Hypothesis]]]:
        for chosen, sources, streams in self._batches([row for row in rows if row not in self._prefixes], self.engine):
            yield from zip(chosen, self.engine.generate(sources, settings, streams), strict=True)
        yield from self._constrained([row for row in rows if row in self._prefixes], settings, self._prefixes).items()

    def _constrained(
        self, rows: Sequence[int], settings: DecodeSettings, phrases: Mapping[int, Phrases]
    ) -> dict[int, list[Hypothesis]]:
        """The hypotheses of a beam search in PyTorch with these phrases; greedy search is one with a beam of 1."""
        if not rows:  # as for samples, of which there may be more than one
            return {}
        if settings.method != "beam":
            settings = replace(settings, method="beam", beam=1)
        found: dict[int, list[Hypothesis]] = {}
        for chosen, sources, streams in self._batches(rows, self.torch_engine):
            own = [phrases[row] for row in chosen]
            found |= dict(zip(chosen, self.torch_engine.generate(sources, settings, streams, (), own), strict=True))
        return found

    @cached_property
    def _requirements(self) -> dict[int, Phrases]:
        """What each part requires, with every placeholder of its source unless `copy_guard` is off."""
        found = {}
        for row, part in enumerate(self.parts):
            if part.terms or part.kept or (part.forced and part.assigned):
                symbols = None
                if part.assigned and (self.settings.copy_guard or part.kept):
                    symbols = {name: part.source.count(name) for name in part.assigned.values()}
                found[row] = Phrases(self.tokenizer, part.terms, prefix=part.forced, symbols=symbols)
        return found

    @cached_property
    def _prefixes(self) -> dict[int, Phrases]:
        """The prefixes of the parts that have one."""
        return {
            row: Phrases(self.tokenizer, {}, prefix=part.forced) for row, part in enumerate(self.parts) if part.forced
        }

    def _empty(self, row: int) -> Hypothesis:
        """The hypothesis for a part without anything to translate: its prefix."""
        return Hypothesis(tuple(self.tokenizer.encode(self.parts[row].forced)), 0.0, 0.0, finished=True)

    def _looping(self, found: Mapping[int, list[Hypothesis]]) -> set[int]:
        return {row for row, (best, *_) in found.items() if is_looping(best.ids, self.encoded[row])}

    def _batches(self, rows: Sequence[int], engine: Engine) -> Iterator[tuple[list[int], list[list[int]], list[int]]]:
        """The rows, sources and streams of each batch; parts of similar length are decoded together."""
        opens = self.tokenizer.opens
        lengths = np.array([[len(self.encoded[row]) + 1] for row in rows], dtype=np.int64).reshape(-1, 1)
        for batch in plan_batches(lengths, engine.max_batch_tokens, seed=0, epoch=0):
            chosen = [rows[index] for index in batch.tolist()]
            yield chosen, [[*opens, *self.encoded[row], EOS] for row in chosen], [self.streams[row] for row in chosen]

    def _lacks_placeholder(self, row: int, hypothesis: Hypothesis) -> bool:
        copied = self.tokenizer.placeholder_ids if self.parts[row].assigned else ()
        return n_missing(hypothesis.ids, self.encoded[row], copied) > 0

    def _n_faults(self, row: int, hypothesis: Hypothesis) -> int:
        """How many spans and placeholders a hypothesis lacks, and how many placeholders it has too often."""
        part, source = self.parts[row], self.encoded[row]
        copied = self.tokenizer.placeholder_ids if part.assigned else ()
        n_lost = len(part.missing(self.text(row, hypothesis))) + len(self.lacking(row, hypothesis))
        return n_lost + n_missing(hypothesis.ids, source, copied) + n_extra(hypothesis.ids, source, copied)


GRID = (0.2, 0.6, 1.0, 1.4)
N_TUNED = 400  # validation rows that decoding is tuned on
_USUAL = 1.0  # preferred where the rows do not tell
_N_RESAMPLES = 200
Found = TypeVar("Found")


def is_open(settings: DecodeSettings) -> bool:
    """Whether the settings leave the length penalty open, and search with more than one hypothesis."""
    return settings.length_penalty is None and settings.method == "beam" and settings.beam > 1


def n_tuning_translations(settings: DecodeSettings) -> int:
    """The number of translations that tuning takes, if there are enough validation rows."""
    if settings.method == "sample":
        return 0
    return N_TUNED * (len(GRID) if is_open(settings) else 1)


def choose_length_penalty(
    settings: DecodeSettings,
    translate: Callable[[DecodeSettings], Found],
    tally: Callable[[Found], Tally],
) -> tuple[DecodingChoice, Found]:
    """Translate with every penalty of the grid; return the choice by score and its translations.

    Of the penalties whose score is within one standard error of the best, the one nearest to 1 is chosen: on a few
    hundred rows, a single translation that repeats itself can decide which score is the highest.
    """
    found = {alpha: translate(replace(settings, length_penalty=alpha)) for alpha in GRID}
    tallies = {alpha: tally(translations) for alpha, translations in found.items()}
    resampled = {alpha: own.resampled(_N_RESAMPLES) for alpha, own in tallies.items()}
    best = max(GRID, key=lambda alpha: tallies[alpha].value)

    def is_close(alpha: float) -> bool:
        error = float((resampled[best] - resampled[alpha]).std())
        return tallies[best].value - tallies[alpha].value <= error

    chosen = min(filter(is_close, GRID), key=lambda alpha: abs(alpha - _USUAL))
    scores = {f"{alpha:g}": own.value for alpha, own in tallies.items()}
    choice = DecodingChoice("length_penalty", chosen, tallies[best].name, scores, len(tallies[best].counts))
    return choice, found[chosen]


def tuning_rows(rows: Sequence[Found]) -> list[Found]:
    """At most `N_TUNED` of the rows, evenly spread: files are often sorted."""
    n_chosen = min(N_TUNED, len(rows))
    return [rows[index * len(rows) // n_chosen] for index in range(n_chosen)]


LOW_CONFIDENCE = 0.05  # below it, a translation is flagged
_N_STEPS = 100  # between the quantiles that are stored
_RANKS = np.linspace(0, 1, _N_STEPS + 1)


@dataclass(frozen=True)
class Confidence:
    """Quantiles of the mean log-probability of a token, over translations of validation rows.

    The confidence of a translation is its rank among them: at 0.05, one in twenty validation translations had a lower
    log-probability. The mean chrF of the low ones, beside that of all, shows what a low rank means.
    """

    quantiles: Sequence[float]
    chrf: float  # mean over all sentences
    low_chrf: float  # mean over those of low confidence
    n_rows: int

    @classmethod
    def fit(cls, log_probabilities: Sequence[float], chrf: Sequence[float]) -> "Confidence":
        """Fit to the translations of validation rows, given the mean log-probability and the chrF of each."""
        quantiles = np.quantile(log_probabilities, _RANKS)
        scores = np.array(chrf)
        is_low = np.array(log_probabilities) <= np.quantile(log_probabilities, LOW_CONFIDENCE)
        return cls(quantiles.tolist(), float(scores.mean()), float(scores[is_low].mean()), len(scores))

    @classmethod
    def restore(cls, metadata: Mapping[str, Any]) -> "Confidence":
        """Return what `metadata` stored; raise ValueError if it was changed into something else."""
        quantiles = [float(value) for value in metadata["quantiles"]]
        found = cls(quantiles, float(metadata["chrf"]), float(metadata["low_chrf"]), int(metadata["n_rows"]))
        are_finite = all(map(math.isfinite, (*quantiles, found.chrf, found.low_chrf)))
        if len(quantiles) != _N_STEPS + 1 or not are_finite or sorted(quantiles) != quantiles:
            raise ValueError(f"metadata.confidence.quantiles are not {_N_STEPS + 1} ascending numbers.")
        return found

    def metadata(self) -> dict[str, Any]:
        """What `restore` needs, as JSON values."""
        return asdict(self)

    def of(self, log_probability: float) -> float:
        """The confidence from 0 to 1 of a translation with this mean log-probability of a token."""
        return self.of_all([log_probability])[0]

    def of_all(self, log_probabilities: Sequence[float]) -> list[float]:
        """The confidences of many translations, in one step."""
        return [float(rank) for rank in np.interp(log_probabilities, self.quantiles, _RANKS)]
