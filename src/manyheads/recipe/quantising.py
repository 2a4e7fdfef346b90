"""`quantise`: a translator in eight bits, if it can be trusted: what that costs is measured before it is believed."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, replace

from manyheads.bundle import Bundle
from manyheads.decode import EngineName
from manyheads.errors import BundleError, EngineError
from manyheads.model.rounding import from_bytes, to_bytes
from manyheads.model.weights import load_weights, weights_of
from manyheads.recipe.trading import MOST_LOST, measure
from manyheads.tasks import Seq2Seq
from manyheads.text.readers import Row

_PATHS: tuple[EngineName, ...] = ("native", "ctranslate2")

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
    # A shortlist's cost was measured with the weights as they were: it is learnt anew from the new bundle.
    small = replace(bundle, task=rounded, int8=asdict(best), shortlist=None, shortened=None, swift=None)
    return small, trials


def _try(bundle: Bundle, exact: Seq2Seq, bytewise: Seq2Seq, rows: Sequence[Row]) -> Trial:
    """Translate the rows both ways."""
    trade = measure(exact, bytewise, rows, bundle.decode)
    assert bytewise.engine is not None
    return Trial(
        engine=bytewise.engine.used,
        n_sentences=trade.n_sentences,
        float32=trade.before,
        int8=trade.after,
        low=trade.low,
        high=trade.high,
        speed=trade.speed,
        same=trade.same,
    )
