"""The `torch` engine: the PyTorch model itself, exact for every setting, with taps and gates."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from manyheads.decode.constraints import Automaton
from manyheads.decode.generate import generate
from manyheads.decode.hypotheses import Hypothesis
from manyheads.decode.settings import DecodeSettings, SpecialTokens
from manyheads.decode.shortlist import Shortlist
from manyheads.model import Transformer


@dataclass(frozen=True)
class TorchEngine:
    """Decode with `generate`."""

    model: Transformer
    special_tokens: SpecialTokens
    name: str = "torch"
    max_batch_tokens: int = 4096

    def unsupported(self, settings: DecodeSettings) -> str:
        """Return an empty string: every setting is supported."""
        return ""

    def generate(
        self,
        sources: Sequence[Sequence[int]],
        settings: DecodeSettings,
        streams: Sequence[int],
        copied: Sequence[int] = (),
        phrases: Sequence[Automaton] = (),
    ) -> list[list[Hypothesis]]:
        """Decode one padded batch.

        Beam search generates each of the ids `copied` as often as its source has it, or the `phrases` of each source.
        """
        width, pad = max(map(len, sources), default=0), self.special_tokens.pad
        rows = [[*source, *[pad] * (width - len(source))] for source in sources]
        source: Int[Tensor, "B S"] = torch.tensor(rows, dtype=torch.long, device=self.model.device)
        source = source.reshape(len(rows), width)
        is_real: Bool[Tensor, "B S"] = source != pad
        leads = self.special_tokens.leads
        return generate(
            self.model,
            source,
            is_real,
            bos=self.special_tokens.bos,
            eos=self.special_tokens.eos,
            forbidden=self.special_tokens.forbidden,
            settings=settings,
            prompt=torch.tensor([leads] * len(rows), device=self.model.device) if leads else None,
            streams=streams,
            copied=copied,
            phrases=phrases,
        )


def make_torch_engine(
    model: Transformer, special_tokens: SpecialTokens, *, is_int8: bool = False, shortlist: Shortlist | None = None
) -> TorchEngine:
    """The engine for a model. It computes in float32 over the whole vocabulary, whatever the options."""
    return TorchEngine(model, special_tokens)
