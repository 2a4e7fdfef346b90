"""`quantise`: a translator in eight bits, if it can be trusted: what that costs is measured before it is believed."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, replace

from manyheads.bundle import Bundle
from manyheads.decode import EngineName
from manyheads.errors import BundleError, EngineError
from manyheads.model.rounding import from_bytes, to_bytes
from manyheads.model.weights import load_weights, weights_of
from manyheads.recipe.trading import MOST_LOST, Trade, measure
from manyheads.tasks import Seq2Seq
from manyheads.text.readers import Row

_PATHS: tuple[EngineName, ...] = ("native", "ctranslate2")

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Trial:
    """One way to compute with bytes, and what came of it beside the model as it is, by the fastest engine for it."""

    engine: str
    trade: Trade


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
        trade = measure(exact, bytewise, rows, bundle.decode)
        trials.append(Trial(bytewise.engine.used, trade))
    trusted = [trial for trial in trials if trial.trade.lost <= MOST_LOST]
    if not trials:
        raise EngineError("No engine here computes in eight bits: the native one needs a C compiler, as gcc.")
    if not trusted:
        least = min(trials, key=lambda trial: trial.trade.lost)
        trade = least.trade
        raise BundleError(
            f"Eight bits would cost this model {trade.lost:.2f} BLEU ({trade.before:.2f} → {trade.after:.2f} on "
            f"{trade.n_sentences} sentences, by the {least.engine} engine); more than {MOST_LOST} is refused. "
            "Use it as it is."
        )
    best = max(trusted, key=lambda trial: trial.trade.speed)
    # A shortlist's cost was measured with the weights as they were: it is learnt anew from the new bundle.
    small = replace(bundle, task=rounded, int8=asdict(best), shortlist=None, shortened=None, swift=None)
    return small, trials
