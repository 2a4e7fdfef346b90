"""`NativeEngine`: sources split among the cores, each part one call of engine.c."""

import ctypes
import logging
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from manyheads.decode.hypotheses import Hypothesis, make_hypothesis
from manyheads.decode.native.library import library
from manyheads.decode.native.model_packing import PackedSettings, pack_groups, pack_settings, pack_tensors, refuse
from manyheads.decode.settings import DecodeSettings, SpecialTokens
from manyheads.decode.shortlist import Shortlist
from manyheads.errors import DataError, EngineError
from manyheads.model import Transformer

logger = logging.getLogger(__name__)

_ROWS = 96  # beams side by side: more do not make the products faster, fewer do not fill them
_SENTENCES_AT_ONCE = 64  # of one call: enough to keep the rows full, few enough that no core waits long for another
_MOST_BEAMS = 64

_int32, _int64, _float = (ctypes.POINTER(kind) for kind in (ctypes.c_int32, ctypes.c_int64, ctypes.c_float))


class _Job(ctypes.Structure):
    """`Job` of engine.c."""

    _fields_ = [
        ("n_sentences", ctypes.c_int64),
        ("ids", _int32),
        ("starts", _int64),
        ("limits", _int32),
        ("forbidden", _int32),
        *((name, ctypes.c_int32) for name in ("n_forbidden", "beam", "n_best", "n_rows")),
        ("length_penalty", ctypes.c_float),
        ("answer_starts", _int64),
        *((name, _int32) for name in ("answers", "n_answers", "answer_lengths", "are_finished")),
        ("log_probabilities", _float),
        ("stop", _int32),
        ("outputs", _int32),
        ("n_outputs", ctypes.c_int32),
    ]


def make_native(
    model: Transformer,
    special_tokens: SpecialTokens,
    *,
    is_int8: bool = False,
    shortlist: Shortlist | None = None,
) -> "NativeEngine":
    """The engine for a model; says what it cannot do, or why it cannot be built."""
    refuse(model.settings)
    if model.device.type != "cpu":
        raise EngineError(f"The native engine is for the CPU; the model is on {model.device}.")
    return NativeEngine(model, special_tokens, library(logger.info), is_int8=is_int8, shortlist=shortlist)


@dataclass(frozen=True)
class _Part:
    """Some of the sources, and what was found for them."""

    index: Sequence[int]
    job: _Job
    held: tuple[NDArray[Any], ...]  # what the job points to


class NativeEngine:
    """A model packed for engine.c; its weights are copied, so what happens to the model later does not count here.

    With a shortlist only the ids on it are written, and probabilities are among these: they sum up to 1 over the list.
    It is the list of all sentences that one core gets at once, so that what a sentence becomes may depend, a little, on
    its neighbours; of a sentence that is asked for alone it is its own.
    """

    max_batch_tokens = 40_000

    def __init__(
        self,
        model: Transformer,
        special_tokens: SpecialTokens,
        native: ctypes.CDLL,
        *,
        is_int8: bool = False,
        shortlist: Shortlist | None = None,
    ) -> None:
        if shortlist is not None:
            shortlist.check_vocab_size(model.settings.vocab_size)
            shortlist = replace(shortlist, always=np.union1d(shortlist.always, [special_tokens.eos]).astype(np.int32))
        self.shortlist = shortlist
        self.name = "native int8" if is_int8 else "native"
        self.special_tokens = special_tokens
        self.max_length, self.vocab_size = model.settings.max_length, model.settings.vocab_size
        self._library = _declared(native)
        settings = pack_settings(model.settings, bos=special_tokens.bos, eos=special_tokens.eos, is_int8=is_int8)
        tensors, groups = pack_tensors(model), pack_groups(model.settings)
        pointers = (_float * len(tensors))(*(tensor.ctypes.data_as(_float) for tensor in tensors))
        sizes = np.array([tensor.size for tensor in tensors], dtype=np.int64)
        wrong = ctypes.c_int64()
        self._model = self._library.mh_new(
            ctypes.byref(settings), pointers, _at(sizes, _int64), len(tensors), _at(groups, _int32), ctypes.byref(wrong)
        )
        if not self._model:
            raise EngineError(f"The native engine cannot take this model: tensor {wrong.value} is of another size.")
        finalize(self, self._library.mh_free, self._model)
        self._threads = ThreadPoolExecutor(_count_cores(), thread_name_prefix="manyheads-native")

    def unsupported(self, settings: DecodeSettings) -> str:
        """Sampling, and very wide beams."""
        if settings.method == "sample":
            return "sampling"
        if settings.method == "beam" and settings.beam > _MOST_BEAMS:
            return f"beam wider than {_MOST_BEAMS}"
        return ""

    def generate(
        self, sources: Sequence[Sequence[int]], settings: DecodeSettings, streams: Sequence[int]
    ) -> list[list[Hypothesis]]:
        """The longest first, so that short ones fill the gaps at the end; a part at a time to each core."""
        _check_lengths(sources, self.max_length)
        limits = [min(settings.max_length(len(source)), self.max_length) for source in sources]
        nothing = make_hypothesis([], 0.0, finished=False, alpha=settings.length_penalty, length=0)
        found = [[nothing] for _ in sources]
        order = sorted(
            (row for row, limit in enumerate(limits) if limit > 0 and sources[row]), key=lambda row: -len(sources[row])
        )
        stop = np.zeros(1, dtype=np.int32)
        # Small parts where there are few sentences: every core gets some.
        size = max(1, min(_SENTENCES_AT_ONCE, -(-len(order) // _count_cores())))
        parts = [
            self._part(order[start : start + size], sources, limits, settings, stop)
            for start in range(0, len(order), size)
        ]
        try:
            results = [self._run(parts[0])] if len(parts) == 1 else list(self._threads.map(self._run, parts))
        except BaseException:
            stop[0] = 1  # the other cores should not go on for nothing
            raise
        if any(results):
            raise MemoryError("There is not enough memory for the native engine: use a narrower beam.")
        for part in parts:
            for row, hypotheses in zip(part.index, _read(part, settings), strict=True):
                found[row] = hypotheses
        return found

    def _run(self, part: _Part) -> int:
        return int(self._library.mh_translate(self._model, ctypes.byref(part.job)))

    def _part(
        self,
        index: Sequence[int],
        sources: Sequence[Sequence[int]],
        limits: Sequence[int],
        settings: DecodeSettings,
        stop: NDArray[np.int32],
    ) -> _Part:
        is_greedy = settings.method == "greedy"
        n_best = 1 if is_greedy else settings.n_best
        ids = np.array([id for row in index for id in sources[row]], dtype=np.int32)
        if ids.size and not 0 <= ids.min() <= ids.max() < self.vocab_size:  # engine.c reads where they point
            raise ValueError(f"Ids must be from 0 to {self.vocab_size - 1}, not {ids.min()} … {ids.max()}.")
        starts = np.array([0, *accumulate(len(sources[row]) for row in index)], dtype=np.int64)
        own_limits = np.array([limits[row] for row in index], dtype=np.int32)
        answer_starts = np.array([0, *accumulate(n_best * limits[row] for row in index)], dtype=np.int64)
        forbidden = np.array(sorted({*self.special_tokens.forbidden, self.special_tokens.bos}), dtype=np.int32)
        outputs = self._outputs(ids)
        answers = np.zeros(int(answer_starts[-1]), dtype=np.int32)
        counts = np.zeros(len(index), dtype=np.int32)
        lengths, finished = (np.zeros(n_best * len(index), dtype=np.int32) for _ in range(2))
        log_probabilities = np.zeros(n_best * len(index), dtype=np.float32)
        job = _Job(
            n_sentences=len(index),
            ids=_at(ids, _int32),
            starts=_at(starts, _int64),
            limits=_at(own_limits, _int32),
            forbidden=_at(forbidden, _int32),
            n_forbidden=len(forbidden),
            beam=1 if is_greedy else settings.beam,
            n_best=n_best,
            n_rows=_ROWS,
            length_penalty=0.0 if is_greedy else settings.length_penalty,
            answer_starts=_at(answer_starts, _int64),
            answers=_at(answers, _int32),
            n_answers=_at(counts, _int32),
            answer_lengths=_at(lengths, _int32),
            are_finished=_at(finished, _int32),
            log_probabilities=_at(log_probabilities, _float),
            stop=_at(stop, _int32),
            outputs=_at(outputs, _int32),
            n_outputs=len(outputs),
        )
        held = (
            answers,
            answer_starts,
            own_limits,
            counts,
            lengths,
            finished,
            log_probabilities,
            ids,
            starts,
            forbidden,
            stop,
            outputs,
        )
        return _Part(index, job, held)

    def _outputs(self, ids: NDArray[np.int32]) -> NDArray[np.int32]:
        """The ids that may be written for these; none: all of them."""
        if self.shortlist is None:
            return np.zeros(0, dtype=np.int32)
        return self.shortlist.allowed(ids)


def _read(part: _Part, settings: DecodeSettings) -> list[list[Hypothesis]]:
    """What a part found, as hypotheses."""
    answers, starts, limits, counts, lengths, finished, log_probabilities = (held.tolist() for held in part.held[:7])
    n_best = part.job.n_best
    found = []
    for sentence in range(len(part.index)):
        hypotheses = []
        for i in range(counts[sentence]):
            at = sentence * n_best + i
            start = starts[sentence] + i * limits[sentence]
            ids = answers[start : start + lengths[at]]
            hypotheses.append(
                make_hypothesis(
                    ids,
                    log_probabilities[at],
                    finished=bool(finished[at]),
                    alpha=settings.length_penalty,
                    length=len(ids) + finished[at],
                )
            )
        found.append(hypotheses * settings.n_best if settings.method == "greedy" else hypotheses)
    return found


def _check_lengths(sources: Sequence[Sequence[int]], max_length: int) -> None:
    longest = max(map(len, sources), default=0)
    if longest > max_length:
        raise DataError(f"A sequence of {longest} tokens is longer than this model's {max_length}. Split the text.")


def _count_cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _at(array: NDArray[Any], kind: Any) -> Any:
    return array.ctypes.data_as(kind)


def _declared(native: ctypes.CDLL) -> ctypes.CDLL:
    """The library with the types of its functions."""
    native.mh_new.restype = ctypes.c_void_p
    native.mh_new.argtypes = [
        ctypes.POINTER(PackedSettings), ctypes.POINTER(_float), _int64, ctypes.c_int64, _int32,
        ctypes.POINTER(ctypes.c_int64),
    ]  # fmt: skip
    native.mh_free.argtypes = [ctypes.c_void_p]
    native.mh_translate.restype = ctypes.c_int
    native.mh_translate.argtypes = [ctypes.c_void_p, ctypes.POINTER(_Job)]
    return native
