"""`Tagging`: the spans and the intent of a text, how they are predicted, and how the lens shows them.

A long text is scored in windows. Heads act on the Transformer's scores only; the scores and probabilities of `TagProbe`
are those of the answer: mixed with the linear tagger, if there is one.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from manyheads.decode import DecodeSettings
from manyheads.messages import _
from manyheads.model import evaluating
from manyheads.tasks.calibration import Calibration
from manyheads.tasks.lens_output import (
    Alternatives,
    LabelChoice,
    LabeledSpan,
    LensOutput,
    find_name,
    refuse_position,
)
from manyheads.tasks.model_inputs import ModelInput, batches_by_length, windows
from manyheads.tasks.tag.crf import CRF, States
from manyheads.tasks.tag.linear_tagger import LinearTagger
from manyheads.tasks.tag.tag_training import Tagger, WordBatch
from manyheads.tasks.task import Progress, one_line
from manyheads.text.reading.tag_schemes import Span
from manyheads.text.tokens.tokenizer import Token, Tokenizer
from manyheads.text.tokens.words import Word, split_text

if TYPE_CHECKING:
    from manyheads.tasks.tag.tag_task import Tag


@dataclass(frozen=True)
class Entity:
    """A labeled span of a raw text, from character `start` to `end`."""

    start: int
    end: int
    label: str
    text: str
    probability: float  # of exactly this span with this label


@dataclass(frozen=True)
class Tagging:
    """The spans of one text, and its intent."""

    text: str
    spans: tuple[Entity, ...]
    label: str = ""  # the intent, if the model predicts intents
    probabilities: Mapping[str, float] = field(default_factory=dict)  # of every intent, the likeliest first

    @property
    def answer(self) -> tuple[Entity, ...]:
        """The spans."""
        return self.spans

    def line(self) -> str:
        """The text with its spans marked `[like this](label)`, after the intent and a tab if there is an intent."""
        parts, end = [], 0
        for span in self.spans:
            parts += [self.text[end : span.start], f"[{span.text}]({span.label})"]
            end = span.end
        marked = one_line("".join([*parts, self.text[end:]]))
        return f"{self.label}\t{marked}" if self.label else marked

    def cells(self) -> dict[str, str | float | None]:
        """The spans as JSON; the intent and its probability, if there is one."""
        spans = json.dumps([vars(span) for span in self.spans], ensure_ascii=False)
        intent = {"label": self.label, "probability": self.probabilities.get(self.label)} if self.label else {}
        return {"spans": spans} | intent


@dataclass(frozen=True)
class Scores:
    """The scores of some texts by one model: of the tags of each text's words, and of each text's intents."""

    words: list[Float[Tensor, "_ K"]]
    intents: Float[Tensor, "N C"]

    def part(self, rows: slice) -> "Scores":
        """The scores of some of the texts."""
        return Scores(self.words[rows], self.intents[rows])

    def mixed(self, other: "Scores", shares: "Shares") -> "Scores":
        """The weighted means of these scores and those of another model, which has these shares."""
        words = [torch.lerp(own, its, shares.tags) for own, its in zip(self.words, other.words, strict=True)]
        return Scores(words, torch.lerp(self.intents, other.intents, shares.intents))


@dataclass(frozen=True)
class Shares:
    """The weight of the linear tagger's scores beside those of the Transformer, from 0 to 1."""

    tags: float = 0.0
    intents: float = 0.0

    def __post_init__(self) -> None:
        if not all(isinstance(share, int | float) and 0 <= share <= 1 for share in (self.tags, self.intents)):
            raise ValueError("metadata.shares must be from 0 to 1.")


@dataclass(frozen=True)
class TaggedWords:
    """The prediction for one text, given as its words."""

    spans: list[Span]
    path: Sequence[int]  # the best path of CRF states; empty without words
    scores: Float[Tensor, "T K"]
    intent_logits: Float[Tensor, " C"]
    intents: Mapping[str, float]  # the probability of each intent, the likeliest first; empty without words

    @property
    def intent(self) -> str:
        """The likeliest intent; "" if there is none."""
        return next(iter(self.intents), "")


@dataclass(frozen=True)
class WordTagger:
    """Predicts the spans of texts that are given as words; the scores of a long text are averaged over windows."""

    module: Tagger
    tokenizer: Tokenizer
    states: States
    intents: tuple[str, ...]
    calibration: Calibration
    linear: LinearTagger | None = None
    shares: Shares = field(default_factory=Shares)

    def tag(self, texts: Sequence[Sequence[str]], progress: Progress = lambda done: None) -> list[TaggedWords]:
        """Predict the spans and the intent of each text."""
        if self.linear is not None and self.shares == Shares(1.0, 1.0):  # the linear tagger decides alone
            alone = Scores(*self.linear.scores(texts))
            progress(len(texts))
            return self.decode(alone, alone)
        own, linear = self.score(texts, progress)
        return self.decode(own, linear)

    def score(
        self, texts: Sequence[Sequence[str]], progress: Progress = lambda done: None
    ) -> tuple[Scores, Scores | None]:
        """The scores of the Transformer, and of the linear tagger if there is one."""
        with evaluating(self.module):
            own = self._score(texts, progress)
            return own, None if self.linear is None else Scores(*self.linear.scores(texts))

    def decode(self, own: Scores, linear: Scores | None) -> list[TaggedWords]:
        """The predictions that follow from scores."""
        scores = own if linear is None else own.mixed(linear, self.shares)
        with evaluating(self.module):
            paths = self._best_paths(scores.words)
        return [
            TaggedWords(self.states.spans(path), path, words, logits, self._rank_intents(logits) if len(words) else {})
            for path, words, logits in zip(paths, scores.words, scores.intents, strict=True)
        ]

    @cached_property
    def crf(self) -> CRF:
        """The CRF that decodes: its transitions are as mixed as the scores are."""
        if self.linear is None:
            return self.module.crf
        own = self.module.crf.transitions.detach()
        mixed = CRF(self.states, learned=False).to(own.device)
        mixed.transitions = torch.lerp(own, self.linear.transitions.to(own.device), self.shares.tags)
        return mixed

    def span_probabilities(self, tagged: TaggedWords) -> list[float]:
        """The probability of each span: that of the valid paths through all of its states."""
        if not tagged.spans:
            return []
        with evaluating(self.module):
            rows = tagged.scores.repeat(1 + len(tagged.spans), 1, 1)  # the first row is not constrained
            for row, span in zip(rows[1:], tagged.spans, strict=True):
                for position in range(span.start, span.end):
                    others = torch.arange(len(self.states)) != tagged.path[position]
                    row[position, others] = -torch.inf
            device = self.module.model.device
            is_real = torch.ones(rows.shape[:2], dtype=torch.bool, device=device)
            totals = self.crf.log_partition(rows.to(device), is_real).cpu()
            return (totals[1:] - totals[0]).exp().clamp(max=1.0).tolist()

    def _rank_intents(self, logits: Float[Tensor, " C"]) -> dict[str, float]:
        probabilities = self.calibration.probabilities(logits[None])[0].tolist() if self.intents else []
        return dict(sorted(zip(self.intents, probabilities, strict=True), key=lambda item: -item[1]))

    def _score(self, texts: Sequence[Sequence[str]], progress: Progress) -> Scores:
        """The scores of each text's words and of its intents, averaged over its windows."""
        limit = self.module.model.settings.max_length - self.tokenizer.n_framing
        vocabulary = list({word for words in texts for word in words})
        tokens = dict(zip(vocabulary, self.tokenizer.encode_words(vocabulary), strict=True))
        # Of a word that is longer than what the model can read at once, the start is read.
        encoded = [[tokens[word][:limit] for word in words] for words in texts]
        parts = [
            (text, start, end)
            for text, words in enumerate(encoded)
            for start, end in windows([len(word) for word in words], limit)
            if words
        ]
        scores = [torch.zeros(len(words), len(self.states)) for words in texts]
        counts = [torch.zeros(len(words), 1) for words in texts]
        intents = torch.zeros(len(texts), len(self.intents))
        n_parts = torch.zeros(len(texts), 1)
        for batch in batches_by_length([1 + sum(map(len, encoded[text][start:end])) for text, start, end in parts]):
            chosen = [parts[part] for part in batch]
            read = WordBatch.of(
                [encoded[text][start:end] for text, start, end in chosen],
                self.module.model.device,
                closes=self.tokenizer.closes,
            )
            tag_scores, intent_logits = self.module(read.ids, read.words, read.word_hashes)
            for row, (text, start, end) in enumerate(chosen):
                scores[text][start:end] += tag_scores[row, : end - start].float().cpu()
                counts[text][start:end] += 1.0
                n_parts[text] += 1.0
                if intent_logits is not None:
                    intents[text] += intent_logits[row].float().cpu()
            progress(sum(start == 0 for _, start, _ in chosen))
        means = [total / count for total, count in zip(scores, counts, strict=True)]
        return Scores(means, intents / n_parts.clamp(min=1.0))

    def _best_paths(self, scores: Sequence[Float[Tensor, "_ K"]]) -> list[list[int]]:
        paths: list[list[int]] = [[] for _ in scores]
        device = self.module.model.device
        indices = [index for index, words in enumerate(scores) if len(words)]
        for batch in batches_by_length([len(scores[index]) * (1 + len(self.states) // 16) for index in indices]):
            texts = [indices[number] for number in batch]
            padded, is_real = _pad([scores[text] for text in texts])
            best = self.crf.best_paths(padded.to(device), is_real.to(device))
            for text, path in zip(texts, best, strict=True):
                paths[text] = path
        return paths


def _pad(rows: Sequence[Float[Tensor, "_ K"]]) -> tuple[Float[Tensor, "B T K"], Bool[Tensor, "B T"]]:
    padded = nn.utils.rnn.pad_sequence(list(rows), batch_first=True)
    lengths = torch.tensor([len(row) for row in rows])
    return padded, torch.arange(padded.size(1)) < lengths[:, None]


def tokenize_words(task: Any, texts: Sequence[str]) -> list[list[Token]]:
    """Return the tokens of each text, tokenized word by word, with their offsets in the text."""
    rows = [split_text(text, task.split_by) for text in texts]
    words = list({word.text for row in rows for word in row})
    tokens_of = dict(zip(words, task.tokenizer.tokenize_batch(words), strict=True))
    return [
        [
            replace(token, start=token.start + word.start, end=token.end + word.start)
            for word in row
            for token in tokens_of[word.text]
        ]
        for row in rows
    ]


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
            spans=tuple(LabeledSpan(span.start, span.end, span.label, span.probability) for span in found.spans),
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
        raise refuse_position(position, _("1 to {last} for tags, −1 for the intent", last=len(tokens) - 1))

    def _scores(self, n_rows: int) -> Scores:
        """The mixed scores of each copy."""
        texts = [word.text for word in self.words]
        encoded = self.task.tokenizer.encode_words(texts)
        read = WordBatch.of([encoded] * n_rows, self.task.model.device, closes=self.task.tokenizer.closes)
        words, intents = self.task.module(read.ids, read.words, read.word_hashes)
        no_intents = torch.zeros(n_rows, len(self.tagger.intents))
        own = Scores(list(words.float().cpu()), no_intents if intents is None else intents.float().cpu())
        if self.tagger.linear is None:
            return own
        linear_words, linear_intents = self.tagger.linear.scores([texts])
        linear = Scores(linear_words * n_rows, linear_intents.expand(n_rows, -1))
        return own.mixed(linear, self.tagger.shares)
