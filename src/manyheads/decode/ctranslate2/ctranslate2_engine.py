"""The engine: workers of one thread each, as many as there are cores, over batches of like lengths."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import torch

from manyheads.decode.ctranslate2.ctranslate2_export import find_unsupported, source_tokens, target_tokens
from manyheads.decode.ctranslate2.keeping import exported
from manyheads.decode.engines import SpecialTokens, Tell, check_lengths, count_cores
from manyheads.decode.hypotheses import Hypothesis, make_hypothesis
from manyheads.decode.settings import DecodeSettings
from manyheads.errors import EngineError
from manyheads.model import Transformer

Precision = Literal["float32", "int8"]

_BATCH_TOKENS = 1024  # of sources, padding included, that a worker decodes at once
_BATCHES_AHEAD = 4  # for each worker, so that none waits long for the last


class CTranslate2Engine:
    """CTranslate2's greedy search."""

    name = "ctranslate2"

    def __init__(self, translator: Any, model: Transformer, special_tokens: SpecialTokens, n_workers: int) -> None:
        self.translator = translator
        self.special_tokens = special_tokens
        self.max_length = model.settings.max_length
        self.has_table = model.settings.positions != "rotary"  # of positions, which ends at max_length
        self.max_batch_tokens = _BATCH_TOKENS * _BATCHES_AHEAD * n_workers
        self._sources = source_tokens(model.settings.vocab_size)
        self._targets = target_tokens(model.settings.vocab_size)

    def unsupported(self, settings: DecodeSettings) -> str:
        """Sampling; and its beam search is another one.

        There, a beam that ends frees its place for another (here it does not), the search is over when as many have
        ended as there are beams (here, when nothing better can come), and the penalty is lengthᵅ without EOS.
        """
        if settings.method == "sample":
            return "sampling that draws the same"
        if settings.method == "beam" and settings.beam > 1:
            return "beam search that finds the same"
        return ""

    def generate(
        self, sources: Sequence[Sequence[int]], settings: DecodeSettings, streams: Sequence[int]
    ) -> list[list[Hypothesis]]:
        """Greedy search."""
        if self.has_table:
            check_lengths(sources, self.max_length)
        inputs = [[self._sources[number] for number in source] for source in sources]
        limits = [min(len(source) + settings.max_new_tokens, self.max_length) for source in sources]
        forbidden = {*self.special_tokens.forbidden, self.special_tokens.bos}
        # To suppress ids is to rescale the others' probabilities, so it is done only where one would be written.
        written, totals = self._search(inputs, limits, forbidden=())
        offending = [row for row, ids in enumerate(written) if not forbidden.isdisjoint(ids)]
        if offending:
            those = [inputs[row] for row in offending]
            again, _ = self._search(those, [limits[row] for row in offending], forbidden=sorted(forbidden))
            for row, ids in zip(offending, again, strict=True):
                written[row] = ids
        # CTranslate2 knows one limit for all: what it wrote beyond a sentence's own is cut off.
        unscored = sorted({*offending, *(row for row, ids in enumerate(written) if len(ids) > limits[row])})
        written = [ids[:limit] for ids, limit in zip(written, limits, strict=True)]
        for row, total in zip(unscored, self._score(inputs, written, unscored), strict=True):
            totals[row] = total
        return [[self._make(ids, total, settings.length_penalty)] for ids, total in zip(written, totals, strict=True)]

    def _search(
        self, inputs: list[list[str]], limits: list[int], *, forbidden: Sequence[int]
    ) -> tuple[list[list[int]], list[float]]:
        """What is written for each source, EOS included, and its log-probability."""
        results = self.translator.translate_batch(
            inputs,
            beam_size=1,
            length_penalty=0,
            max_batch_size=_BATCH_TOKENS,
            batch_type="tokens",
            max_input_length=0,
            min_decoding_length=0,
            max_decoding_length=max(limits, default=1),
            suppress_sequences=[[self._targets[number]] for number in forbidden] or None,
            return_scores=True,
            return_end_token=True,
        )
        return [[int(token) for token in result.hypotheses[0]] for result in results], [
            result.scores[0] for result in results
        ]

    def _score(self, inputs: list[list[str]], written: list[list[int]], rows: list[int]) -> list[float]:
        """The log-probability of what was written for these sources, not rescaled."""
        if not rows:
            return []
        results = self.translator.score_batch(
            [inputs[row] for row in rows],
            [[self._targets[number] for number in written[row] if number != self.special_tokens.eos] for row in rows],
            max_batch_size=_BATCH_TOKENS,
            batch_type="tokens",
            max_input_length=0,
        )
        # It always scores EOS too: not part of what was cut off before it.
        return [sum(result.log_probs[: len(written[row])]) for row, result in zip(rows, results, strict=True)]

    def _make(self, ids: list[int], total: float, alpha: float) -> Hypothesis:
        finished = bool(ids) and ids[-1] == self.special_tokens.eos
        return make_hypothesis(ids[:-1] if finished else ids, total, finished=finished, alpha=alpha, length=len(ids))


def make_ctranslate2(
    model: Transformer, special_tokens: SpecialTokens, folder: Path | None, tell: Tell, precision: Precision = "float32"
) -> CTranslate2Engine:
    """The engine for a model; what is exported for it is kept beside the bundle in `folder`."""
    try:
        from ctranslate2 import Translator
    except ImportError as reason:
        raise EngineError(
            f"The ctranslate2 engine is not installed ({reason}). Install it: pip install 'manyheads[ctranslate2]'"
        ) from None
    if unknown := find_unsupported(model.settings):
        raise EngineError(f"The ctranslate2 engine does not know {', '.join(unknown)}.")
    device = model.device
    if device.type != "cpu":
        raise EngineError(f"The ctranslate2 engine is for the CPU; this model is on {device}.")
    n_workers, n_threads = count_cores(), torch.get_num_threads()
    with exported(model, special_tokens, folder, tell) as place:
        try:
            # Two threads that share one computation are slower than two workers with one thread each.
            translator = Translator(
                str(place),
                compute_type="float32" if precision == "float32" else "int8_float32",
                inter_threads=n_workers,
                intra_threads=1,
            )
        except (RuntimeError, ValueError) as reason:
            raise EngineError(f"ctranslate2 cannot load this model in {precision}: {reason}") from None
        finally:
            torch.set_num_threads(n_threads)  # it shares OpenMP with torch, which would go on with its one thread
    return CTranslate2Engine(translator, model, special_tokens, n_workers)
