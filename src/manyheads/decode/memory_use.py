"""How many sentences `generate` decodes at once: a wide beam makes batches smaller instead of filling the memory."""

from manyheads.decode.settings import DecodeSettings
from manyheads.errors import EngineError
from manyheads.messages import _
from manyheads.model import ModelSettings
from manyheads.model.size import machine_memory

_BUDGET = 2_000_000_000  # bytes
_FLOAT = 4  # bytes
# Copies of the logits of one step, measured: sampling sorts them and adds noise.
_LOGITS_COPIES = {"greedy": 4, "beam": 4, "sample": 12}
_MASK_COPIES = 10  # bytes for each pair of a beam and a position of the tree: Boolean masks and one in float32


def sentences_at_once(model: ModelSettings, settings: DecodeSettings, n_positions: int) -> int:
    """The number of sentences of up to `n_positions` positions that fit in the budget, at least 1.

    A sentence that needs more memory than this machine has raises EngineError.
    """
    needed, memory = bytes_per_sentence(model, settings, n_positions), machine_memory()
    if memory is not None and needed > memory:
        name, value = ("beam", settings.beam) if settings.method == "beam" else ("n_best", settings.n_best)
        raise EngineError(
            _(
                "decode.{name} = {value} with up to {n_positions:,} tokens needs about {needed:,.0f} GB of memory; "
                "this machine has {memory:,.0f} GB. Use a smaller decode.{name} or decode.max_new_tokens.",
                name=name,
                value=value,
                n_positions=n_positions,
                needed=needed / 1e9,
                memory=memory / 1e9,
            )
        )
    return max(1, _BUDGET // needed)


def bytes_per_sentence(model: ModelSettings, settings: DecodeSettings, n_positions: int) -> int:
    """The memory for decoding one sentence to its maximum length: logits, caches and the masks of the tree of beams."""
    n_rows = settings.beam if settings.method == "beam" else settings.n_best
    n_logits = n_rows * model.vocab_size * (n_positions if model.mixes_positions else 1)
    heads = model.heads
    cached_width = model.n_decoder_layers * heads.n_key_heads * (heads.head_width + heads.value_width)
    n_cached = n_rows * n_positions * cached_width
    n_visible = n_rows * n_rows * n_positions
    return (_LOGITS_COPIES[settings.method] * n_logits + n_cached) * _FLOAT + _MASK_COPIES * n_visible
