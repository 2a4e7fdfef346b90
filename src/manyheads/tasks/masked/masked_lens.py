"""Masked language models in the lens: the tokens that fill the masks of one text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from manyheads.messages import Message, _
from manyheads.model import evaluating
from manyheads.tasks.lens_output import (
    Alternatives,
    FilledMask,
    LensOutput,
    check_token_id,
    refuse_position,
    token_text,
    top_tokens,
)
from manyheads.tasks.masked.masked_training import MASK, MASK_TEXT
from manyheads.tasks.model_inputs import ModelInput
from manyheads.text.tokens.words import split_text

if TYPE_CHECKING:
    from manyheads.tasks.masked.masked_task import Masked

_NO_MASK = Message("The text has no [MASK]: write it where the model is to predict a token.")

# N copies of the text, M masks, V vocabulary.


def with_mask(task: "Masked", text: str) -> str:
    """Return a text with one word masked: the longest that is one token, so that the model can fill in the same word.

    The first word is kept if there are others: nothing before it says what it could be.
    """
    words = split_text(text, "word")
    starts, ends = {word.start for word in words}, {word.end for word in words}
    spans = []
    for token in task.tokenizer.tokenize(text):
        start = token.end - len(text[token.start : token.end].lstrip())
        is_whole = start in starts and token.end in ends and task.tokenizer.byte_of(token.id) is None
        if is_whole and text[start : token.end].isalpha():
            spans.append((start, token.end))
    if not spans:  # a text of rare words, each of several tokens
        spans = [(word.start, word.end) for word in words if word.text.isalpha()]
    if not spans:
        return f"{text} {MASK_TEXT}"
    start, end = max(spans[1:] or spans, key=lambda span: span[1] - span[0])
    return text[:start] + MASK_TEXT + text[end:]


@dataclass(frozen=True)
class MaskedProbe:
    """The tokens that a model chose for the masks of one text."""

    task: "Masked"
    model_input: ModelInput
    masks: Sequence[int]  # positions
    chosen: Sequence[int]  # token ids

    @classmethod
    def of(cls, task: "Masked", model_input: ModelInput) -> "MaskedProbe":
        """Fill the masks of an input."""
        masks = [position for position, token in enumerate(model_input.source) if token.id == MASK]
        probe = cls(task, model_input, masks, [])
        chosen: list[int] = probe._log_probabilities(1)[0].argmax(-1).tolist() if masks else []
        return cls(task, model_input, masks, chosen)

    def output(self) -> LensOutput:
        """The tokens that could fill each mask."""
        tokenizer, tokens = self.task.tokenizer, self.model_input.source
        if not self.masks:
            return LensOutput("masked", self.model_input.text, notes=(_NO_MASK,))
        filled = dict(zip(self.masks, self.chosen, strict=True))
        ids = [filled.get(position, token.id) for position, token in enumerate(tokens)]
        rows = self._log_probabilities(1)[0]
        masks = tuple(
            FilledMask(
                tokens[position].end - len(tokens[position].text), tokens[position].end, top_tokens(tokenizer, row)
            )
            for position, row in zip(self.masks, rows, strict=True)
        )
        total = float(self.log_probabilities(1)[0])
        return LensOutput("masked", tokenizer.decode(ids[1:]), masks=masks, log_probability=total)

    def log_probabilities(self, n_rows: int) -> Float[Tensor, " N"]:
        """The log-probability of the chosen tokens in each copy."""
        chosen = torch.tensor(self.chosen, dtype=torch.long).expand(n_rows, -1)
        return self._log_probabilities(n_rows).gather(2, chosen[..., None])[..., 0].sum(1)

    def alternatives(self, position: int, instead: int | str) -> Alternatives:
        """The token chosen for the mask at a source position, and another one."""
        if position not in self.masks:
            raise refuse_position(position, _("the masks at {positions}", positions=", ".join(map(str, self.masks))))
        other = check_token_id(instead, self.task.tokenizer.vocab_size)
        chosen = self.chosen[self.masks.index(position)]
        names = [token_text(self.task.tokenizer, token_id) for token_id in (chosen, other)]
        return Alternatives(names[0], names[1], (chosen, other))

    def logits(self, position: int, n_rows: int) -> Float[Tensor, "N V"]:
        """The logits of every token at one mask in each copy."""
        with evaluating(self.task.model):
            return self.task.model.output.logits(self._hidden(n_rows)[:, position]).cpu().double()

    def _log_probabilities(self, n_rows: int) -> Float[Tensor, "N M V"]:
        with evaluating(self.task.model):
            vectors = self._hidden(n_rows)[:, list(self.masks)].flatten(0, 1)
            logs = self.task.log_probabilities(vectors).cpu().double()
            return logs.unflatten(0, (n_rows, len(self.masks)))

    def _hidden(self, n_rows: int) -> Float[Tensor, "N S W"]:
        ids = [token.id for token in self.model_input.source]
        source = torch.tensor([ids], device=self.task.model.device).expand(n_rows, -1)
        return self.task.model.encode(source, torch.ones_like(source, dtype=torch.bool))
