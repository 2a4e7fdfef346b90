"""`quantize`: a seq2seq bundle with int8 weights, with the measured cost."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, replace

from manyheads.bundle import Bundle
from manyheads.compress.trade_off import MAX_COST, Compressed, measure_trade_off, require_small_cost
from manyheads.decode import EngineSelector
from manyheads.errors import BundleError, EngineError
from manyheads.messages import _
from manyheads.model.weights import dequantize_weights, load_weights, quantize_weights, weights_of
from manyheads.tasks import PairTask
from manyheads.text.reading.readers import Row


@dataclass(frozen=True)
class QuantizationReport:
    """The engine that computes with int8 weights."""

    engine: str


def quantize(bundle: Bundle, rows: Sequence[Row], max_cost: float = MAX_COST) -> Compressed[QuantizationReport]:
    """Quantize the weights of a bundle to int8 and measure the cost on these rows; more than `max_cost` is refused."""
    task = bundle.task
    if not isinstance(task, PairTask):
        raise BundleError(_("Only seq2seq bundles can be quantized; this bundle is of task {kind}.", kind=bundle.kind))
    if bundle.int8 is not None:
        raise BundleError(_("This bundle is quantized already."))
    rounded = task.restore(deepcopy(task.model), task.tokenizer, task.settings, task.metadata())
    assert isinstance(rounded, PairTask)
    load_weights(rounded.model, dequantize_weights(quantize_weights(weights_of(task.model))), "the quantized weights")
    selector = EngineSelector("native", is_int8=True, is_silent=True)
    quantized = rounded.with_engine(selector)
    engine = quantized.engine_for(bundle.decode).name
    if engine == "torch":
        raise EngineError(
            _("Only the native engine computes with int8 weights. {fallback}", fallback=selector.fallback)
        )
    trade_off = measure_trade_off(task.with_engine(EngineSelector("auto")), quantized, rows, bundle.decode)
    require_small_cost(trade_off.change, _("Quantization"), _("Use the bundle as it is."), max_cost)
    report = QuantizationReport(engine)
    # The cost of a shortlist was measured with the original weights: learn it again from the new bundle.
    small = replace(
        bundle,
        task=rounded,
        int8={**asdict(report), "trade_off": asdict(trade_off)},
        shortlist=None,
        shortlist_cost=None,
        engine=EngineSelector("auto", is_int8=True),
    )
    return Compressed(small, trade_off, report)
