"""Taggers in the lens: the spans and the intent of one text, and the scores behind them with other gates.

Heads act on the Transformer's scores only. Scores and probabilities here are those of the answer: mixed with the linear
tagger, if there is one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from manyheads.decode import DecodeSettings
from manyheads.model import evaluating
from manyheads.tasks.lens_output import (
    Alternatives,
    LabelChoice,
    LabeledSpan,
    LensOutput,
    find_name,
    refuse_position,
)
from manyheads.tasks.tag.tag_model import WordBatch
from manyheads.tasks.tag.tag_prediction import Scores, WordTagger
from manyheads.tasks.task import ModelInput
from manyheads.text.tokens.words import Word, split_text

if TYPE_CHECKING:
    from manyheads.tasks.tag.tag_task import Tag

_INTENT = -1  # the position of the intent

# N copies of the text, T words, K states, C intents.


@dataclass(frozen=True)
class TagProbe:
    """The tags and the intent that a tagger chose for one text."""

    task: "Tag"
    tagger: WordTagger
    model_input: ModelInput
    words: Sequence[Word]
    path: Sequence[int]
    intent: str

    @classmethod
    def of(cls, task: "Tag", model_input: ModelInput) -> "TagProbe":
        """Tag the text of an input."""
        words, tagger = split_text(model_input.text, task.split_by), task.word_tagger
        (tagged,) = tagger.tag([[word.text for word in words]])
        return cls(task, tagger, model_input, words, tagged.path, tagged.intent)

    def output(self) -> LensOutput:
        """The spans with their probabilities, and the intents."""
        (found,) = self.task.predict([self.model_input.text], DecodeSettings())
        row = (" ".join(word.text for word in self.words), "")
        return LensOutput(
            task="tag",
            answer=found.line(),
            labels=tuple(LabelChoice(name, probability) for name, probability in found.probabilities.items()),
            ngram_share=None if self.task.linear is None else self.task.baseline_share([row]),
            spans=tuple(LabeledSpan(one.start, one.end, one.label, one.probability) for one in found.spans),
            log_probability=float(self.log_probabilities(1)[0]),
        )

    def log_probabilities(self, n_rows: int) -> Float[Tensor, " N"]:
        """The log-probability of the best path and of the likeliest intent in each copy."""
        with evaluating(self.task.module):
            scores = self._scores(n_rows)
            words = torch.stack(scores.words)
            paths = torch.tensor([list(self.path)] * n_rows)
            is_real = torch.ones_like(paths, dtype=torch.bool)
            device = self.task.model.device
            crf = self.tagger.crf
            totals = crf.log_probability(words.to(device), paths.to(device), is_real.to(device)).cpu().double()
            if self.intent:
                intents = self.task.calibration.probabilities(scores.intents.double())
                totals = totals + intents[:, self.tagger.intents.index(self.intent)].log()
        return totals

    def alternatives(self, position: int, instead: int | str) -> Alternatives:
        """The tag of the word at a source position, or the intent at −1, and another one."""
        if position == _INTENT:
            other = find_name(instead, self.tagger.intents, "intent")
            chosen = self.tagger.intents.index(self.intent)
            return Alternatives(self.intent, self.tagger.intents[other], (chosen, other))
        word = self._word_at(position)
        names = self.task.states.names
        other = find_name(instead, names, "tag")
        return Alternatives(names[self.path[word]], names[other], (self.path[word], other))

    def logits(self, position: int, n_rows: int) -> Float[Tensor, "N V"]:
        """The scores of the tags of the word at a source position, or of the intents at −1, in each copy."""
        with evaluating(self.task.module):
            scores = self._scores(n_rows)
        if position == _INTENT:
            return scores.intents.double() / self.task.calibration.temperature
        return torch.stack(scores.words)[:, self._word_at(position)].double()

    def _word_at(self, position: int) -> int:
        tokens = self.model_input.source
        if 0 < position < len(tokens):
            start = tokens[position].start
            for number, word in enumerate(self.words):
                if word.start <= start < word.end:
                    return number
        raise refuse_position(position, f"1 to {len(tokens) - 1} for tags, −1 for the intent")

    def _scores(self, n_rows: int) -> Scores:
        """The mixed scores of each copy."""
        texts = [word.text for word in self.words]
        encoded = self.task.tokenizer.encode_batch(texts)
        read = WordBatch.of([encoded] * n_rows, self.task.model.device)
        words, intents = self.task.module(read.ids, read.words, read.word_hashes)
        no_intents = torch.zeros(n_rows, len(self.tagger.intents))
        own = Scores(list(words.float().cpu()), no_intents if intents is None else intents.float().cpu())
        if self.tagger.linear is None:
            return own
        linear_words, linear_intents = self.tagger.linear.scores([texts])
        linear = Scores(linear_words * n_rows, linear_intents.expand(n_rows, -1))
        return own.mixed(linear, self.tagger.shares)
