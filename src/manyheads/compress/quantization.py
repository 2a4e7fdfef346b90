"""`quantize`: a translator in eight bits, if it can be trusted: what that costs is measured before it is believed."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, replace

from manyheads.bundle import Bundle
from manyheads.compress.trade_off import MAX_BLEU_DROP, TradeOff, measure_trade_off
from manyheads.decode import EngineSelector
from manyheads.errors import BundleError, EngineError
from manyheads.model.weights import dequantize_weights, load_weights, quantize_weights, weights_of
from manyheads.tasks import Seq2Seq
from manyheads.text.readers import Row

Tell = Callable[[str], None]


@dataclass(frozen=True)
class QuantizationTrial:
    """One way to compute with bytes, and what came of it beside the model as it is, by the fastest engine for it."""

    engine: str
    trade_off: TradeOff


def quantize(
    bundle: Bundle, rows: Sequence[Row], tell: Tell = lambda line: None
) -> tuple[Bundle, list[QuantizationTrial]]:
    """The bundle in eight bits, and every way that was tried; the fastest of those that cost little is chosen."""
    task = bundle.task
    if not isinstance(task, Seq2Seq):
        raise BundleError(f"Only translators can be quantised by now; this bundle is of task {bundle.kind}.")
    if bundle.int8 is not None:
        raise BundleError("This bundle is in eight bits already.")
    rounded = replace(task, model=deepcopy(task.model))
    load_weights(rounded.model, dequantize_weights(quantize_weights(weights_of(task.model))), "the rounded weights")
    exact = task.with_engine(EngineSelector("auto"))
    trials = []
    quantized = rounded.with_engine(EngineSelector("native", is_int8=True))
    engine = quantized.engine_for(bundle.decode)
    if engine.name == "torch":
        tell(quantized.engine.fallback or "")
    else:
        trade_off = measure_trade_off(exact, quantized, rows, bundle.decode)
        trials.append(QuantizationTrial(engine.name, trade_off))
    trusted = [trial for trial in trials if trial.trade_off.bleu_drop <= MAX_BLEU_DROP]
    if not trials:
        raise EngineError("No engine here computes in eight bits: the native one needs a C compiler, as gcc.")
    if not trusted:
        least = min(trials, key=lambda trial: trial.trade_off.bleu_drop)
        trade_off = least.trade_off
        raise BundleError(
            f"Eight bits would cost this model {trade_off.bleu_drop:.2f} BLEU ({trade_off.before:.2f} → {trade_off.after:.2f} on "
            f"{trade_off.n_sentences} sentences, by the {least.engine} engine); more than {MAX_BLEU_DROP} is refused. "
            "Use it as it is."
        )
    best = max(trusted, key=lambda trial: trial.trade_off.speedup)
    # A shortlist's cost was measured with the weights as they were: it is learnt anew from the new bundle.
    small = replace(
        bundle,
        task=rounded,
        int8=asdict(best),
        shortlist=None,
        shortlist_cost=None,
        engine=EngineSelector("auto", is_int8=True),
    )
    return small, trials
