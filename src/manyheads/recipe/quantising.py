"""`quantise`: a translator in eight bits, if it can be trusted: what that costs is measured before it is believed."""

import time
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from statistics import median

from manyheads.bundle import Bundle
from manyheads.decode import EngineName
from manyheads.errors import BundleError, EngineError
from manyheads.metrics import compare
from manyheads.model.rounding import from_bytes, to_bytes
from manyheads.model.weights import load_weights, weights_of
from manyheads.tasks import Seq2Seq
from manyheads.text.readers import Row

MOST_LOST = 0.2  # BLEU
_PATHS: tuple[EngineName, ...] = ("native", "ctranslate2")
_TURNS = 3

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Trial:
    """One way to compute with bytes, and what came of it."""

    engine: str
    n_sentences: int
    float32: float  # BLEU of the model as it is, by the fastest engine for it
    int8: float
    low: float  # 95 % of resamples have a difference int8 − float32 between these
    high: float
    speed: float  # sentences a second, to those of float32
    same: float  # the share of sentences that are the same to the last character

    @property
    def lost(self) -> float:
        """BLEU that bytes cost."""
        return self.float32 - self.int8


def quantise(bundle: Bundle, rows: Sequence[Row], tell: Tell = lambda line: None) -> tuple[Bundle, list[Trial]]:
    """The bundle in eight bits, and every way that was tried; the fastest of those that cost little is chosen."""
    task = bundle.task
    if not isinstance(task, Seq2Seq):
        raise BundleError(f"Only translators can be quantised by now; this bundle is of task {bundle.kind}.")
    if bundle.int8 is not None:
        raise BundleError("This bundle is in eight bits already.")
    rounded = replace(task, model=deepcopy(task.model), engine=None)
    load_weights(rounded.model, from_bytes(to_bytes(weights_of(task.model))), "the rounded weights")
    exact = task.answering("auto")
    trials = []
    for name in _PATHS:
        told: list[str] = []
        bytewise = rounded.answering(name, tell=told.append, is_int8=True)
        assert bytewise.engine is not None
        if bytewise.engine.choose(bundle.decode).name == "reference":
            tell(told[0] if told else f"The {name} engine cannot do it.")
            continue
        trials.append(_try(bundle, exact, bytewise, rows))
    trusted = [trial for trial in trials if trial.lost <= MOST_LOST]
    if not trials:
        raise EngineError("No engine here computes in eight bits: the native one needs a C compiler, as gcc.")
    if not trusted:
        least = min(trials, key=lambda trial: trial.lost)
        raise BundleError(
            f"Eight bits would cost this model {least.lost:.2f} BLEU ({least.float32:.2f} → {least.int8:.2f} on "
            f"{least.n_sentences} sentences, by the {least.engine} engine); more than {MOST_LOST} is refused. "
            "Use it as it is."
        )
    best = max(trusted, key=lambda trial: trial.speed)
    return replace(bundle, task=rounded, int8=asdict(best), swift=None), trials


def _try(bundle: Bundle, exact: Seq2Seq, bytewise: Seq2Seq, rows: Sequence[Row]) -> Trial:
    """Translate the rows both ways, in turns."""
    found: dict[str, Sequence[str]] = {}
    ratios = []
    for _ in range(_TURNS):
        seconds = []
        for name, task in (("exact", exact), ("bytes", bytewise)):
            started = time.perf_counter()
            found[name] = task.answer(rows, bundle.decode).texts
            seconds.append(time.perf_counter() - started)
        ratios.append(seconds[0] / seconds[1])
    assert bytewise.engine is not None
    references = [row[1] for row in rows]
    bleu = compare(found["bytes"], found["exact"], references, bundle.task.settings.target_language)[0]
    return Trial(
        engine=bytewise.engine.used,
        n_sentences=len(rows),
        float32=bleu.other,
        int8=bleu.value,
        low=bleu.low,
        high=bleu.high,
        speed=median(ratios),
        same=sum(a == b for a, b in zip(found["exact"], found["bytes"], strict=True)) / len(rows),
    )
