"""`WriterProbe`: what a decoder writes at each position of a fixed target, with probabilities and alternatives."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from manyheads.messages import Message
from manyheads.model import Transformer, evaluating
from manyheads.tasks.lens_output import (
    SPECIAL_NAMES,
    Alternatives,
    LensOutput,
    WrittenToken,
    check_token_id,
    refuse_position,
    token_text,
    top_tokens,
)
from manyheads.tasks.task import ModelInput
from manyheads.text.tokens.tokenizer import METASPACE, Token, Tokenizer

_MAX_LOGITS = 1 << 23  # computed at once

# N copies of the input, T target positions, W width, V vocabulary.


@dataclass(frozen=True)
class WriterProbe:
    """A model that writes the target of one input, from the position `first` on."""

    task: str
    model: Transformer
    tokenizer: Tokenizer
    model_input: ModelInput
    first: int  # the position that writes the first token of the answer
    notes: tuple[Message, ...] = ()

    def output(self, also: Sequence[Sequence[int]] = ()) -> LensOutput:
        """The tokens of the answer, from one forward pass; `also` are more alternatives of each token, by their ids."""
        tokens, total = [], 0.0
        with evaluating(self.model):
            hidden = self._hidden(1)[0, self.first : len(self.written)]
            for position, row in enumerate(self._log_probabilities(hidden), start=self.first):
                more = also[position - self.first] if also else ()
                tokens.append(self._written_token(position, row, more))
                total += float(row[self.written[position].id])
        return LensOutput(
            task=self.task,
            answer=self.model_input.answer,
            tokens=tuple(tokens),
            first=self.first,
            log_probability=total if tokens else None,
            notes=self.notes,
        )

    @property
    def written(self) -> tuple[Token, ...]:
        """The token that follows each position, as far as known."""
        return self.model_input.written

    def log_probabilities(self, n_rows: int) -> Float[Tensor, " N"]:
        """The log-probability of the answer in each copy of the input."""
        ids = self._ids(self.written[self.first :]).cpu()
        with evaluating(self.model):
            hidden = self._hidden(n_rows)[:, self.first : len(self.written)].flatten(0, 1)
            n_at_once = max(1, _MAX_LOGITS // self.model.settings.vocab_size)
            logs = [
                self.model.output.logits(part).cpu().double().log_softmax(-1).gather(1, part_ids[:, None])[:, 0]
                for part, part_ids in zip(hidden.split(n_at_once), ids.repeat(n_rows).split(n_at_once), strict=True)
            ]
            return torch.cat(logs).reshape(n_rows, len(ids)).sum(1)

    def alternatives(self, position: int, instead: int | str) -> Alternatives:
        """The token that is written at a position, and another one."""
        if not 0 <= position < len(self.written):
            raise refuse_position(position, f"0 to {len(self.written) - 1}" if self.written else "none, without answer")
        chosen, before = self.written[position], [token.id for token in self.model_input.target[: position + 1]]
        other = check_token_id(instead, self.tokenizer.vocab_size)
        names = [token_text(self.tokenizer, token_id, before) for token_id in (chosen.id, other)]
        return Alternatives(names[0], names[1], (chosen.id, other))

    def logits(self, position: int, n_rows: int) -> Float[Tensor, "N V"]:
        """The logits of the token after a position in each copy of the input."""
        with evaluating(self.model):
            return self.model.output.logits(self._hidden(n_rows)[:, position]).cpu().double()

    def _hidden(self, n_rows: int) -> Float[Tensor, "N T W"]:
        source, target = (
            self._ids(tokens).expand(n_rows, -1) if tokens else None
            for tokens in (self.model_input.source, self.model_input.target)
        )
        return self.model.hidden(source, target)

    def _ids(self, tokens: tuple[Token, ...]) -> Int[Tensor, " T"]:
        return torch.tensor([token.id for token in tokens], dtype=torch.long, device=self.model.device)

    def _log_probabilities(self, hidden: Float[Tensor, "T W"]) -> Iterator[Float[Tensor, " V"]]:
        """The log-probabilities of the token after each position, in parts that fit in memory."""
        for part in hidden.split(max(1, _MAX_LOGITS // self.model.settings.vocab_size)):
            yield from self.model.output.logits(part).cpu().double().log_softmax(-1)  # MPS has no float64

    def _written_token(
        self, position: int, log_probabilities: Float[Tensor, " V"], also: Sequence[int]
    ) -> WrittenToken:
        token, before = self.written[position], [token.id for token in self.model_input.target[: position + 1]]
        probability = float(log_probabilities[token.id].exp())
        alternatives = top_tokens(self.tokenizer, log_probabilities, before, also)
        return WrittenToken(self._text(position), probability, alternatives)

    def _text(self, position: int) -> str:
        """The characters of the answer that a token covers; its name if it covers none."""
        token = self.written[position]
        if token.id in SPECIAL_NAMES:
            return SPECIAL_NAMES[token.id]
        # A language model reads its answer as part of the text.
        whole = self.model_input.answer if self.model_input.source else self.model_input.text + self.model_input.answer
        if self.tokenizer.byte_of(token.id) is not None and position > self.first:
            previous = self.written[position - 1]
            is_byte = self.tokenizer.byte_of(previous.id) is not None
            if is_byte and (previous.start, previous.end) == (token.start, token.end):
                return ""
        return whole[token.start : token.end] or token.text.replace(METASPACE, " ")
