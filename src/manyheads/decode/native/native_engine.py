"""`NativeEngine`: sources are split among the cores, and each part is one call of the C library."""

import ctypes
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from manyheads.cores import count_cores
from manyheads.decode.hypotheses import Hypothesis, make_hypothesis
from manyheads.decode.native.loading import library
from manyheads.decode.native.model_packing import PackedSettings, pack_groups, pack_settings, pack_tensors, refuse
from manyheads.decode.settings import DecodeSettings, SpecialTokens
from manyheads.decode.shortlist import Shortlist
from manyheads.errors import DataError, EngineError
from manyheads.messages import _
from manyheads.model import Transformer

_ROWS = 96  # beams per product: more are not faster, fewer leave registers idle
_SENTENCES_AT_ONCE = 64  # per call: enough to fill the rows, few enough that no core waits long for another
_MAX_ANSWER_IDS = 10_000_000  # of one part, if every answer had the maximum length
_MAX_BEAM = 64  # MAX_BEAM of engine.h
_OK, _NO_MEMORY, _STOPPED = 0, 1, 2  # as in engine.h

_int32, _int64, _float = (ctypes.POINTER(kind) for kind in (ctypes.c_int32, ctypes.c_int64, ctypes.c_float))


class _Job(ctypes.Structure):
    """`Job` of engine.h."""

    _fields_ = [
        ("n_sentences", ctypes.c_int64),
        ("ids", _int32),
        ("n_ids", ctypes.c_int64),
        ("starts", _int64),
        *((name, _int32) for name in ("limits", "forbidden", "outputs")),
        *((name, ctypes.c_int32) for name in ("n_forbidden", "n_outputs", "beam", "n_best", "max_rows")),
        ("length_penalty", ctypes.c_float),
        ("answer_starts", _int64),
        ("answers", _int32),
        ("answers_size", ctypes.c_int64),
        *((name, _int32) for name in ("n_answers", "answer_lengths", "are_finished")),
        ("log_probabilities", _float),
        ("stop", _int32),
    ]


def make_native(
    model: Transformer,
    special_tokens: SpecialTokens,
    *,
    is_int8: bool = False,
    shortlist: Shortlist | None = None,
) -> "NativeEngine":
    """The engine for a model; raises `EngineError` if it does not support the model or no library can be loaded."""
    refuse(model.settings)
    if model.device.type != "cpu":
        raise EngineError(_("The native engine runs on the CPU; the model is on {device}.", device=model.device))
    if special_tokens.leads:
        raise EngineError(_("The native engine does not support outputs that begin with a given token."))
    return NativeEngine(model, special_tokens, library(), is_int8=is_int8, shortlist=shortlist)


@dataclass(frozen=True)
class _Part:
    """Some of the sources, and the arrays that receive their hypotheses."""

    index: Sequence[int]  # rows of the caller's sources
    job: _Job
    inputs: tuple[NDArray[Any], ...]  # keeps the arrays that the job points to alive
    limits: NDArray[np.int32]
    starts: NDArray[np.int64]  # of each sentence's hypotheses in `ids`
    ids: NDArray[np.int32]
    counts: NDArray[np.int32]
    lengths: NDArray[np.int32]
    finished: NDArray[np.int32]
    log_probabilities: NDArray[np.float32]


class NativeEngine:
    """A model packed for the native engine. The weights are copied: later changes to the model have no effect here.

    With a shortlist only the listed tokens are generated, and probabilities sum to 1 over the list. The list is that of
    all sentences in one call, so a sentence's result may depend slightly on its batch; a sentence that is translated
    alone has its own list.
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
        self._library = _declare(native)
        settings = pack_settings(model.settings, bos=special_tokens.bos, eos=special_tokens.eos, is_int8=is_int8)
        self._model = _new_model(self._library, settings, pack_tensors(model), pack_groups(model.settings))
        finalize(self, self._library.mh_free, self._model)
        self._pools: dict[int, ThreadPoolExecutor] = {}  # by process id

    def unsupported(self, settings: DecodeSettings) -> str:
        """Return "sampling", "no_repeat_ngram", a beam that is too wide, or an empty string."""
        if settings.method == "sample":
            return _("sampling")
        if settings.no_repeat_ngram is not None:
            return "no_repeat_ngram"
        if settings.method == "beam" and settings.beam > _MAX_BEAM:
            return f"beam wider than {_MAX_BEAM}"
        return ""

    def generate(
        self, sources: Sequence[Sequence[int]], settings: DecodeSettings, streams: Sequence[int]
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each source, best first.

        Long sources are decoded first, so that short ones fill the gaps at the end.
        """
        _check_search(settings)
        _check_lengths(sources, self.max_length)
        limits = [min(settings.max_length(len(source)), self.max_length) for source in sources]
        empty = make_hypothesis([], 0.0, finished=False, alpha=settings.alpha, length=0)
        results = [[empty] for _ in sources]
        order = sorted(
            (row for row, limit in enumerate(limits) if limit > 0 and sources[row]), key=lambda row: -len(sources[row])
        )
        stop = np.zeros(1, dtype=np.int32)
        # Few sentences make small parts, so that every core gets some; long answers too, since a part holds them all.
        most_ids = settings.n_best * max(limits, default=0)
        size = max(1, min(_SENTENCES_AT_ONCE, -(-len(order) // _n_threads()), _MAX_ANSWER_IDS // max(1, most_ids)))

        def decode(start: int) -> None:
            part = self._part(order[start : start + size], sources, limits, settings, stop)
            self._run(part)
            for row, hypotheses in zip(part.index, _read(part, settings), strict=True):
                results[row] = hypotheses

        try:
            if len(order) == 1:  # a call from the main thread cannot be interrupted until it returns
                decode(0)
            else:
                list(self._pool().map(decode, range(0, len(order), size)))
        except BaseException:
            stop[0] = 1  # the other threads end at their next step
            raise
        return results

    def _pool(self) -> ThreadPoolExecutor:
        """The threads of this process: a fork, in which a server answers a long text, has none of its parent's."""
        pid = os.getpid()
        if pid not in self._pools:
            self._pools[pid] = ThreadPoolExecutor(_n_threads(), thread_name_prefix="manyheads-native")
        return self._pools[pid]

    def _run(self, part: _Part) -> None:
        message = ctypes.create_string_buffer(self._library.mh_message_size())
        code = self._library.mh_generate(self._model, ctypes.byref(part.job), message)
        if code == _NO_MEMORY:
            raise EngineError(
                _(
                    "The native engine ran out of memory: {n_sources} sources, beam = {beam}. Use a narrower "
                    "beam, or pass fewer or shorter sources.",
                    n_sources=part.job.n_sentences,
                    beam=part.job.beam,
                )
            )
        if code not in (_OK, _STOPPED):  # it is stopped only after another part has raised an error
            raise EngineError(
                _("The native engine rejected its input: {reason}.", reason=message.value.decode(errors="replace"))
            )

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
        source_ids = [id for row in index for id in sources[row]]
        if source_ids and not 0 <= min(source_ids) <= max(source_ids) < self.vocab_size:
            raise ValueError(f"Ids must be from 0 to {self.vocab_size - 1}, not {min(source_ids)} … {max(source_ids)}.")
        ids = np.array(source_ids, dtype=np.int32)
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
            n_ids=len(ids),
            starts=_at(starts, _int64),
            limits=_at(own_limits, _int32),
            forbidden=_at(forbidden, _int32),
            outputs=_at(outputs, _int32),
            n_forbidden=len(forbidden),
            n_outputs=len(outputs),
            beam=1 if is_greedy else settings.beam,
            n_best=n_best,
            max_rows=_ROWS,
            length_penalty=0.0 if is_greedy else settings.alpha,
            answer_starts=_at(answer_starts, _int64),
            answers=_at(answers, _int32),
            answers_size=len(answers),
            n_answers=_at(counts, _int32),
            answer_lengths=_at(lengths, _int32),
            are_finished=_at(finished, _int32),
            log_probabilities=_at(log_probabilities, _float),
            stop=_at(stop, _int32),
        )
        return _Part(
            index=index,
            job=job,
            inputs=(ids, starts, forbidden, outputs, stop),
            limits=own_limits,
            starts=answer_starts,
            ids=answers,
            counts=counts,
            lengths=lengths,
            finished=finished,
            log_probabilities=log_probabilities,
        )

    def _outputs(self, ids: NDArray[np.int32]) -> NDArray[np.int32]:
        """The ids that may be generated for these sources; an empty array means all."""
        if self.shortlist is None:
            return np.zeros(0, dtype=np.int32)
        return self.shortlist.allowed(ids)


def _check_search(settings: DecodeSettings) -> None:
    """`DecodeSettings` checks itself; this guards the C code against settings that it cannot run."""
    if settings.method == "sample":
        raise EngineError(_("The native engine does not sample. Use the torch engine."))
    if settings.method == "greedy":
        return
    if not 1 <= settings.beam <= _MAX_BEAM:
        raise EngineError(
            _(
                "The native engine searches with 1 to {most} beams, not decode.beam = {beam}.",
                most=_MAX_BEAM,
                beam=settings.beam,
            )
        )
    if not 1 <= settings.n_best <= settings.beam:
        raise EngineError(
            _(
                "decode.n_best = {n_best} must be between 1 and decode.beam = {beam}.",
                n_best=settings.n_best,
                beam=settings.beam,
            )
        )


def _read(part: _Part, settings: DecodeSettings) -> list[list[Hypothesis]]:
    """The hypotheses of a part."""
    ids, lengths, finished = part.ids.tolist(), part.lengths.tolist(), part.finished.tolist()
    log_probabilities = part.log_probabilities.tolist()
    results = []
    for sentence, (start, limit, count) in enumerate(
        zip(part.starts.tolist()[:-1], part.limits.tolist(), part.counts.tolist(), strict=True)
    ):
        hypotheses = []
        for i in range(count):
            at = sentence * part.job.n_best + i
            generated = ids[start + i * limit : start + i * limit + lengths[at]]
            hypotheses.append(
                make_hypothesis(
                    generated,
                    log_probabilities[at],
                    finished=bool(finished[at]),
                    alpha=settings.alpha,
                    length=len(generated) + finished[at],
                )
            )
        results.append(hypotheses)
    return results


def _new_model(
    native: ctypes.CDLL, settings: PackedSettings, tensors: Sequence[NDArray[np.float32]], groups: NDArray[np.int32]
) -> int:
    """The address of the C model."""
    pointers = (_float * len(tensors))(*(_at(tensor, _float) for tensor in tensors))
    sizes = np.array([tensor.size for tensor in tensors], dtype=np.int64)
    message = ctypes.create_string_buffer(native.mh_message_size())
    address = ctypes.c_void_p()
    code = native.mh_new(
        ctypes.byref(settings),
        pointers,
        _at(sizes, _int64),
        len(tensors),
        _at(groups, _int32),
        len(groups),
        ctypes.byref(address),
        message,
    )
    if code == _NO_MEMORY:
        n_megabytes = sum(tensor.nbytes for tensor in tensors) / 1e6
        raise EngineError(
            _("The native engine ran out of memory for a model of {n_megabytes:,.0f} MB.", n_megabytes=n_megabytes)
        )
    if code != _OK or not address.value:
        raise EngineError(
            _("The native engine does not support this model: {reason}.", reason=message.value.decode(errors="replace"))
        )
    return address.value


def _check_lengths(sources: Sequence[Sequence[int]], max_length: int) -> None:
    longest = max(map(len, sources), default=0)
    if longest > max_length:
        raise DataError(
            _(
                "A sequence of {length} tokens is longer than this model's {max_length}. Split the text.",
                length=longest,
                max_length=max_length,
            )
        )


def _n_threads() -> int:
    """The number of cores that this process may use: at most OMP_NUM_THREADS, if that is set."""
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    if not wanted.isdigit():
        return count_cores()
    # Cores are counted by reading files, which takes a tenth of the time of a short sentence.
    return min(count_cores(), int(wanted)) if int(wanted) > 1 else 1


def _at(array: NDArray[Any], kind: Any) -> Any:
    return array.ctypes.data_as(kind)


def _declare(native: ctypes.CDLL) -> ctypes.CDLL:
    """The library with the types of its functions, and the sizes of its structures checked."""
    native.mh_struct_size.restype = ctypes.c_int64
    native.mh_struct_size.argtypes = [ctypes.c_int]
    for which, structure in enumerate((PackedSettings, _Job)):
        if (size := native.mh_struct_size(which)) != ctypes.sizeof(structure):
            raise EngineError(
                _(
                    "The native engine's library does not match this version of manyheads: {name} has {size} "
                    "bytes; expected {expected}.",
                    name=structure.__name__,
                    size=size,
                    expected=ctypes.sizeof(structure),
                )
            )
    native.mh_message_size.restype = ctypes.c_int
    native.mh_new.restype = ctypes.c_int
    native.mh_new.argtypes = [
        ctypes.POINTER(PackedSettings), ctypes.POINTER(_float), _int64, ctypes.c_int64, _int32, ctypes.c_int64,
        ctypes.POINTER(ctypes.c_void_p), ctypes.c_char_p,
    ]  # fmt: skip
    native.mh_free.restype = None
    native.mh_free.argtypes = [ctypes.c_void_p]
    native.mh_generate.restype = ctypes.c_int
    native.mh_generate.argtypes = [ctypes.c_void_p, ctypes.POINTER(_Job), ctypes.c_char_p]
    return native
