"""`EncodedExample`: an example as the model reads it, token by token, with the annotation of every token.

Gold annotation is of words, attention is between tokens. A token can contain the end of one word and the start of the
next, as in Chinese, so tokens are divided among words by their characters.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from manyheads.corpora import Relation, Rendering
from manyheads.errors import LensError
from manyheads.messages import Message, _
from manyheads.tasks import Task
from manyheads.tasks.lens_examples import Example
from manyheads.text.tokens.tokenizer import BOS, EOS, METASPACE, Token, Tokenizer

Span = tuple[int, int]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_MAX_TOKENS = 128  # of a document without annotation; the rest is cut off
_N_RAREST = 2  # tokens of a text
_MAX_BYTE_TOKENS = 0.5  # of all tokens


@dataclass(frozen=True, eq=False)
class TokenPositions:
    """One sequence of token ids, special tokens included, with the annotation of each position."""

    ids: NDArray[np.int64]
    is_punctuation: Bools
    shares: Floats  # P × W: the share of each token that belongs to each word; 0 for special tokens
    relations: tuple[Relation, ...] = ()
    is_rare: Bools = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))  # the rarest tokens of this text
    spans: tuple[Span | None, ...] = ()  # in characters, without the space before a word; None if empty

    @property
    def is_special(self) -> Bools:
        """Which positions are BOS or EOS."""
        return np.isin(self.ids, (BOS, EOS))

    @property
    def next_shares(self) -> Floats:
        """The shares of the token that a decoder writes at each position, which is the next one it reads."""
        return np.concatenate([self.shares[1:], np.zeros_like(self.shares[:1])])


@dataclass(frozen=True, eq=False)
class EncodedExample:
    """An example with the token positions of its text, or of source and target."""

    example: Example
    sides: tuple[TokenPositions, ...]


@dataclass(frozen=True)
class EncodedSample:
    """Encoded examples, and how many were skipped as empty or too long."""

    examples: Sequence[EncodedExample]
    n_skipped: int = 0


def word_shares(tokens: Sequence[Span], words: Sequence[Span]) -> Floats:
    """Return the share of each token that belongs to each word, by the characters they have in common.

    Characters outside any word, such as the space before one, do not count. Words may overlap.
    """
    if not tokens or not words:
        return np.zeros((len(tokens), len(words)))
    starts, ends = (np.array([span[side] for span in tokens])[:, None] for side in (0, 1))
    word_starts, word_ends = (np.array([span[side] for span in words])[None] for side in (0, 1))
    common = (np.minimum(ends, word_ends) - np.maximum(starts, word_starts)).clip(min=0).astype(np.float64)
    in_word = np.zeros(int(ends.max()) + 1, dtype=np.int64)
    for start, end in words:
        in_word[start + 1 : end + 1] = 1
    n_before = in_word.cumsum()
    n_in_words = (n_before[ends] - n_before[starts]).astype(np.float64)
    return np.divide(common, n_in_words, out=np.zeros_like(common), where=n_in_words > 0)


def pool_to_words(weights: Floats, queries: Floats, keys: Floats) -> Floats:
    """Pool attention between tokens to words: TO a word, sum over its tokens; FROM a word, average (Clark 2019).

    weights H × Q × K, queries Q × V words, keys K × W words; the result is H × V × W. The row of a word without tokens
    is 0.
    """
    total = queries.sum(0)
    mean = np.divide(queries, total, out=np.zeros_like(queries), where=total > 0)
    return np.asarray(mean.T @ weights @ keys)


def no_text(task: Task) -> Message:
    """Why `encode_examples` refuses texts none of which the model can read."""
    return Message(
        "There is no text to observe heads on: every text is empty, or longer than the {max_length:,} positions of "
        "this model. Split the texts, or give others.",
        max_length=task.model.settings.max_length,
    )


def encode_examples(task: Task, examples: Iterable[Example]) -> EncodedSample:
    """Encode examples as the task's model reads them; skip those that are too long, and cut long documents."""
    examples = list(examples)
    texts = [rendering.text for example in examples for rendering in example.texts]
    tokens = iter(task.lens_examples.tokenize(task, texts))
    encoded = [_encode(task, example, [next(tokens) for rendering in example.texts]) for example in examples]
    kept = [example for example in encoded if example is not None]
    if not kept:
        raise LensError(str(no_text(task)))
    return EncodedSample(_with_rare_tokens(kept), len(encoded) - len(kept))


def require_known_script(encoded_sample: EncodedSample, tokenizer: Tokenizer, where: str) -> None:
    """Raise `LensError` for text in a script that the tokenizer does not know and splits into bytes."""
    ids = np.concatenate([encoded.sides[0].ids for encoded in encoded_sample.examples])
    is_byte = np.array([tokenizer.byte_of(token_id) is not None for token_id in range(tokenizer.vocab_size)])
    share = float(is_byte[ids].mean())
    if share > _MAX_BYTE_TOKENS:
        raise LensError(
            _(
                "{where} does not match this model: {share:.0%} of its tokens are single bytes, so the model was "
                "not trained on such text. Give gold in the language that it reads.",
                where=where,
                share=share,
            )
        )


def _encode(task: Task, example: Example, sides_tokens: Sequence[list[Token]]) -> EncodedExample | None:
    """Encode one example; None if it is empty, too long, or lacks its target."""
    settings = task.model.settings
    is_pair = settings.has_cross_attention
    opens, closes = task.tokenizer.opens, task.tokenizer.closes
    special_tokens: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (  # before, after
        ((BOS,), () if closes is None or settings.has_decoder else (closes,)),
    )
    if is_pair:
        special_tokens = ((opens, (EOS,)), ((BOS, *task.tokenizer.leads), ()))
    if len(example.texts) < len(special_tokens):
        return None
    sides = []
    for rendering, tokens, (before, after) in zip(example.texts, sides_tokens, special_tokens, strict=False):
        if not is_pair and not rendering.words:
            tokens = tokens[: min(_MAX_TOKENS, settings.max_length - len(before) - len(after))]
        if not rendering.text.strip() or len(before) + len(tokens) + len(after) > settings.max_length:
            return None
        sides.append(_positions(task.tokenizer, rendering, tokens, before, after))
    return EncodedExample(example, tuple(sides))


def _positions(
    tokenizer: Tokenizer,
    rendering: Rendering,
    tokens: Sequence[Token],
    before: tuple[int, ...],
    after: tuple[int, ...],
) -> TokenPositions:
    text_positions = slice(len(before), len(before) + len(tokens))
    ids = np.array([*before, *(token.id for token in tokens), *after], dtype=np.int64)
    shares = np.zeros((len(ids), len(rendering.words)))
    shares[text_positions] = word_shares([(token.start, token.end) for token in tokens], rendering.spans)
    is_punctuation = np.zeros(len(ids), dtype=np.bool_)
    is_punctuation[text_positions] = [_is_punctuation(tokenizer, token) for token in tokens]
    spans = (
        *(None for _ in before),
        *(_visible_span(rendering.text, token) for token in tokens),
        *(None for _ in after),
    )
    return TokenPositions(ids, is_punctuation, shares, rendering.relations, spans=spans)


def _visible_span(text: str, token: Token) -> Span | None:
    """Return the span of a token without the spaces around it, unless it is nothing but spaces; None if it is empty."""
    covered = text[token.start : token.end]
    start = token.start + len(covered) - len(covered.lstrip())
    if start < token.end:
        return start, token.start + len(covered.rstrip())
    return (token.start, token.end) if covered else None


def _is_punctuation(tokenizer: Tokenizer, token: Token) -> bool:
    text = token.text.replace(METASPACE, "")
    return bool(text) and tokenizer.byte_of(token.id) is None and not any(character.isalnum() for character in text)


def _with_rare_tokens(encoded_examples: Sequence[EncodedExample]) -> list[EncodedExample]:
    """Set `is_rare` to the rarest tokens of each text, by their counts in the whole sample."""
    counters = [Counter[int]() for _ in encoded_examples[0].sides]
    for encoded in encoded_examples:
        for counter, positions in zip(counters, encoded.sides, strict=True):
            counter.update(positions.ids.tolist())
    return [
        replace(encoded, sides=tuple(map(_with_rare_tokens_of, encoded.sides, counters)))
        for encoded in encoded_examples
    ]


def _with_rare_tokens_of(positions: TokenPositions, counter: Counter[int]) -> TokenPositions:
    counts = np.array([counter[token_id] for token_id in positions.ids.tolist()], dtype=np.float64)
    counts[positions.is_special | positions.is_punctuation] = np.inf
    is_rare = np.zeros(len(counts), dtype=np.bool_)
    is_rare[np.argsort(counts, kind="stable")[:_N_RAREST]] = True
    return replace(positions, is_rare=is_rare & np.isfinite(counts))
