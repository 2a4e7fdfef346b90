"""Make a bundle smaller or faster, and measure what that costs: prune, quantize, shortlist.

Each function takes a bundle and returns a `Compressed`: the new bundle, its measured `TradeOff` of quality for speed,
and a report of the method. May import lens and everything below it.
"""

from manyheads.compress.pruning import PruningReport, prune
from manyheads.compress.quantization import QuantizationReport, quantize
from manyheads.compress.shortlisting import ShortlistReport, ShortlistSettings, add_shortlist
from manyheads.compress.trade_off import Compressed, TradeOff

__all__ = [
    "Compressed",
    "PruningReport",
    "QuantizationReport",
    "ShortlistReport",
    "ShortlistSettings",
    "TradeOff",
    "add_shortlist",
    "prune",
    "quantize",
]
