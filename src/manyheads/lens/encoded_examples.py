"""`TokenPositions`: a text as the model reads it, token by token, and all that is asked of these tokens later.

Gold is of words, attention is of tokens, and a token may hold the end of one word and the beginning of the next, as
in Chinese. So tokens are shared out among words by characters.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from manyheads.corpora import Relation, Rendering
from manyheads.errors import LensError
from manyheads.lens.examples import Example
from manyheads.tasks import Tag, Task
from manyheads.text.tokenizer import BOS, EOS, Token, Tokenizer
from manyheads.text.words import split_text

Span = tuple[int, int]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_WINDOW = 128  # tokens of a long document that are watched at once
_RAREST = 2  # tokens of a text
_MOST_BYTES = 0.5


@dataclass(frozen=True, eq=False)
class TokenPositions:
    """One sequence of ids, special ones too, with what is known of each place."""

    ids: NDArray[np.int64]
    is_punctuation: Bools
    shares: Floats  # P × W: how much of a token belongs to each word; nothing of a special one
    relations: tuple[Relation, ...] = ()
    is_rare: Bools = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))  # the rarest tokens of this text

    @property
    def is_special(self) -> Bools:
        """What is no text: BOS and EOS."""
        return np.isin(self.ids, (BOS, EOS))

    @property
    def next_shares(self) -> Floats:
        """The shares of what is written at each place of a decoder: those of the place that follows."""
        return np.concatenate([self.shares[1:], np.zeros_like(self.shares[:1])])


@dataclass(frozen=True, eq=False)
class EncodedExample:
    """An example as the model reads it: the only text, or source and target."""

    example: Example
    sides: tuple[TokenPositions, ...]


@dataclass(frozen=True)
class EncodedSample:
    """What heads are watched on, and how many examples were too long or empty for that."""

    examples: Sequence[EncodedExample]
    n_skipped: int = 0


def word_shares(tokens: Sequence[Span], words: Sequence[Span]) -> Floats:
    """How much of each token belongs to each word, by the characters they have in common.

    What is in no word, as the space before one, counts nowhere. Words may share their characters.
    """
    if not tokens or not words:
        return np.zeros((len(tokens), len(words)))
    starts, ends = (np.array([span[side] for span in tokens])[:, None] for side in (0, 1))
    word_starts, word_ends = (np.array([span[side] for span in words])[None] for side in (0, 1))
    common = (np.minimum(ends, word_ends) - np.maximum(starts, word_starts)).clip(min=0).astype(np.float64)
    held = np.zeros(int(ends.max()) + 1, dtype=np.int64)  # characters that some word has, counted up
    for start, end in words:
        held[start + 1 : end + 1] = 1
    before = held.cumsum()
    n_held = (before[ends] - before[starts]).astype(np.float64)
    return np.divide(common, n_held, out=np.zeros_like(common), where=n_held > 0)


def pool_to_words(weights: Floats, queries: Floats, keys: Floats) -> Floats:
    """Attention between words: TO a word the sum of its tokens' shares, FROM a word the mean (Clark 2019).

    weights H × Q × K, queries Q × V words, keys K × W words; the result H × V × W. A word of no token looks nowhere.
    """
    total = queries.sum(0)
    mean = np.divide(queries, total, out=np.zeros_like(queries), where=total > 0)
    return np.asarray(mean.T @ weights @ keys)


def encode_examples(task: Task, examples: Iterable[Example]) -> EncodedSample:
    """The examples as the task's model reads them; one too long for it is left out, a long document is cut."""
    examples = list(examples)
    texts = [rendering.text for example in examples for rendering in example.texts]
    tokens = iter(_tokens(task, texts))
    read = [_read(task, example, [next(tokens) for _ in example.texts]) for example in examples]
    kept = [encoded for encoded in read if encoded is not None]
    if not kept:
        raise LensError(
            "There is nothing to watch heads on: every text is empty, or longer than the "
            f"{task.model.settings.max_length:,} positions of this model. Split the texts up, or give others."
        )
    return EncodedSample(_with_rare(kept), len(read) - len(kept))


def require_known_script(encoded_sample: EncodedSample, tokenizer: Tokenizer, where: str) -> None:
    """Refuse text of a language that the model's tokens do not know: it would be spelt byte by byte."""
    ids = np.concatenate([encoded.sides[0].ids for encoded in encoded_sample.examples])
    is_byte = np.array([tokenizer.byte_of(int(number)) is not None for number in range(tokenizer.vocab_size)])
    share = float(is_byte[ids].mean())
    if share > _MOST_BYTES:
        raise LensError(
            f"{where} does not match this model: {share:.0%} of its tokens are single bytes, so the model has never "
            "learnt such text. Give gold in the language that it reads."
        )


def _read(task: Task, example: Example, sides_tokens: Sequence[list[Token]]) -> EncodedExample | None:
    """The example as the model reads it, if it is neither empty nor too long; a text without gold may be cut."""
    settings = task.model.settings
    is_pair = settings.has_encoder and settings.has_decoder
    around: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (((BOS,), ()),)
    if is_pair:
        around = (((), (EOS,)), ((BOS,), ()))
    if len(example.texts) < len(around):
        return None
    sides = []
    for rendering, tokens, (before, after) in zip(example.texts, sides_tokens, around, strict=False):
        if not is_pair and not rendering.words:
            tokens = tokens[: min(_WINDOW, settings.max_length - 1)]
        if not rendering.text.strip() or len(tokens) >= settings.max_length:
            return None
        sides.append(_positions(task.tokenizer, rendering, tokens, before, after))
    return EncodedExample(example, tuple(sides))


def _tokens(task: Task, texts: Sequence[str]) -> list[list[Token]]:
    if not isinstance(task, Tag):
        return task.tokenizer.tokenize_batch(texts)
    words = [split_text(text, task.split_by) for text in texts]  # a tagger reads word by word
    names = list({word.text for row in words for word in row})
    known = dict(zip(names, task.tokenizer.tokenize_batch(names), strict=True))
    return [
        [
            replace(token, start=token.start + word.start, end=token.end + word.start)
            for word in row
            for token in known[word.text]
        ]
        for row in words
    ]


def _positions(
    tokenizer: Tokenizer,
    rendering: Rendering,
    tokens: Sequence[Token],
    before: tuple[int, ...],
    after: tuple[int, ...],
) -> TokenPositions:
    here = slice(len(before), len(before) + len(tokens))
    ids = np.array([*before, *(token.id for token in tokens), *after], dtype=np.int64)
    shares = np.zeros((len(ids), len(rendering.words)))
    shares[here] = word_shares([(token.start, token.end) for token in tokens], rendering.spans)
    is_punctuation = np.zeros(len(ids), dtype=np.bool_)
    is_punctuation[here] = [_is_punctuation(tokenizer, token) for token in tokens]
    return TokenPositions(ids, is_punctuation, shares, rendering.relations)


def _is_punctuation(tokenizer: Tokenizer, token: Token) -> bool:
    text = token.text.replace("▁", "")
    return bool(text) and tokenizer.byte_of(token.id) is None and not any(one.isalnum() for one in text)


def _with_rare(encoded_examples: Sequence[EncodedExample]) -> list[EncodedExample]:
    """The same with each text's rarest tokens marked, as the whole sample counts them."""
    counts = [Counter[int]() for _ in encoded_examples[0].sides]
    for encoded in encoded_examples:
        for count, positions in zip(counts, encoded.sides, strict=True):
            count.update(positions.ids.tolist())
    marked = []
    for encoded in encoded_examples:
        sides = []
        for count, positions in zip(counts, encoded.sides, strict=True):
            often = np.array([count[number] for number in positions.ids.tolist()], dtype=np.float64)
            often[positions.is_special | positions.is_punctuation] = np.inf
            is_rare = np.zeros(len(often), dtype=np.bool_)
            is_rare[np.argsort(often, kind="stable")[:_RAREST]] = True
            sides.append(replace(positions, is_rare=is_rare & np.isfinite(often)))
        marked.append(replace(encoded, sides=tuple(sides)))
    return marked
