"""The memory that training takes on each device, from the settings of the model and the shape of a batch."""

from dataclasses import asdict, dataclass

from manyheads.model import ModelSettings
from manyheads.model.flops import BatchShape
from manyheads.model.size import parameters_by_part

_FLOAT32 = 4  # bytes; weights, gradients, moments and EMA are float32 in every precision
_BLOCK_ROWS = 256  # rows of logits that exist at once: the loss is computed in blocks


@dataclass(frozen=True, kw_only=True)
class DeviceMemory:
    """Bytes on one device. Temporary buffers and the overhead of the allocator come on top: leave a fifth free."""

    weights: float
    gradients: float
    adam: float  # two moments per weight
    ema: float
    gathered: float  # whole weights of the layers at work, with FSDP
    activations: float  # what the backward pass needs
    logits: float
    program: float = 0.0  # everything else in the memory of a CPU: Python, PyTorch, the text, temporary buffers

    @property
    def total(self) -> float:
        """All of it."""
        return sum(asdict(self).values())


def device_memory(
    settings: ModelSettings,
    n_parameters: int,
    shape: BatchShape,
    *,
    n_devices: int = 1,
    is_sharded: bool = False,
    has_ema: bool = False,
    uses_bfloat16: bool = False,
) -> DeviceMemory:
    """The memory of one of `n_devices`, which share each batch; `is_sharded`: FSDP shares the state as well."""
    state = _FLOAT32 * n_parameters / (n_devices if is_sharded else 1)
    parts = parameters_by_part(settings)
    n_layers = settings.has_encoder * settings.n_encoder_layers + settings.has_decoder * settings.n_decoder_layers
    layer = sum(parts[name] for name in ("attention", "feed-forward", "norms")) / n_layers
    casts = 2.0 * (parts["attention"] + parts["feed-forward"]) if uses_bfloat16 else 0.0  # copies in bfloat16
    return DeviceMemory(
        weights=state,
        gradients=state,
        adam=2 * state,
        ema=state if has_ema else 0.0,
        gathered=_FLOAT32 * (parts["embeddings"] + layer) if is_sharded and n_devices > 1 else 0.0,
        activations=activation_bytes(settings, shape, uses_bfloat16=uses_bfloat16) / n_devices + casts,
        logits=2.0 * _FLOAT32 * min(_BLOCK_ROWS, shape.n_outputs) * settings.vocab_size,
    )


def activation_bytes(settings: ModelSettings, shape: BatchShape, *, uses_bfloat16: bool = False) -> float:
    """What a forward pass with fused attention keeps for the backward pass.

    For each position, with W the width, A that of all heads and F that of the feed-forward network, in float32:

        encoder layer, or decoder layer without cross-attention   4 (6 W + 4 A + F) bytes
        decoder layer with cross-attention                        4 (9 W + 8 A + F) bytes
        embedding and final norm of a stack                       4 · 2 W bytes

    In bfloat16, A and F take half, and the residual stream and its norms stay in float32: 4 (5 W + 2 A + F / 2) and
    4 (8 W + 4 A + F / 2).
    """
    heads = settings.heads
    width, inner, all_heads = settings.width, settings.feed_forward_width, heads.n_heads * heads.head_width
    if uses_bfloat16:
        plain, cross = 5 * width + 2 * all_heads + inner / 2, 8 * width + 4 * all_heads + inner / 2
    else:
        plain, cross = 6 * width + 4 * all_heads + inner, 9 * width + 8 * all_heads + inner
    encoder = (settings.n_encoder_layers * plain + 2 * width) * settings.has_encoder
    decoder = settings.n_decoder_layers * (cross if settings.has_cross_attention else plain) + 2 * width
    return _FLOAT32 * (shape.n_source * encoder + shape.n_target * decoder * settings.has_decoder)
