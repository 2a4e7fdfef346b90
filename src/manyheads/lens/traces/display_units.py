"""`Side`: the tokens of a text as people read them, grouped into tokens, characters or words.

Attention is between tokens. A byte token is not readable, and one token can contain several Chinese characters, so a
unit has parts: positions of tokens, each with the share of the token that belongs to the unit. Attention TO a unit is
the sum over its parts, attention FROM a unit their mean (Clark 2019).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from manyheads.lens.traces.encoded_examples import word_shares
from manyheads.tasks import ModelInput
from manyheads.text.tokens.tokenizer import BOS, EOS, METASPACE, PAD, UNK, Token, Tokenizer
from manyheads.text.tokens.words import SplitBy, split_text

UnitName = Literal["tokens", "characters", "words"]
UnitKind = Literal["text", "special", "punctuation", "byte"]
_SPECIAL = {BOS: "BOS", EOS: "EOS", PAD: "PAD", UNK: "UNK"}
_UNKNOWN = "?"  # the token after the last position, if it is not known


@dataclass(frozen=True)
class Unit:
    """A token, a character or a word, with the tokens it consists of."""

    text: str
    start: int
    end: int
    kind: UnitKind
    parts: tuple[tuple[int, float], ...]  # position of a token, share of the token


@dataclass(frozen=True)
class Side:
    """One sequence of positions with its text; the parts of each kind of unit cover every position once."""

    text: str
    tokens: tuple[Unit, ...]
    characters: tuple[Unit, ...]
    words: tuple[Unit, ...]

    def units(self, name: UnitName) -> tuple[Unit, ...]:
        """The units of this name."""
        return {"tokens": self.tokens, "characters": self.characters, "words": self.words}[name]


@dataclass(frozen=True)
class Sides:
    """The sequences of a model input: what the encoder reads, what the decoder reads, and what it writes."""

    source: Side | None
    target: Side | None
    written: Side | None  # at each position, the token that follows it


def sides_of(model_input: ModelInput, tokenizer: Tokenizer) -> Sides:
    """Return the sides of a model input."""
    # The offsets of an answer count from its beginning if there is an encoder, else from the beginning of the text.
    answer = model_input.answer if model_input.source else model_input.text + model_input.answer
    written = model_input.written
    if len(written) < len(model_input.target):
        written = (*written, Token(_UNKNOWN, UNK, len(answer), len(answer)))
    return Sides(
        source=make_side(model_input.text, model_input.source, tokenizer) if model_input.source else None,
        target=make_side(answer, model_input.target, tokenizer) if model_input.target else None,
        written=make_side(answer, written, tokenizer) if model_input.target else None,
    )


def make_side(text: str, tokens: Sequence[Token], tokenizer: Tokenizer) -> Side:
    """Return the units of the tokens of a text."""
    return Side(
        text=text,
        tokens=tuple(_token_unit(tokenizer, position, token) for position, token in enumerate(tokens)),
        characters=_grouped(text, tokens, tokenizer, "character"),
        words=_grouped(text, tokens, tokenizer, "word"),
    )


def _token_unit(tokenizer: Tokenizer, position: int, token: Token) -> Unit:
    parts = ((position, 1.0),)
    if token.id in _SPECIAL:
        name = _UNKNOWN if token.text == _UNKNOWN else _SPECIAL[token.id]
        return Unit(name, token.start, token.end, "special", parts)
    byte = tokenizer.byte_of(token.id)
    if byte is not None:
        return Unit(f"{byte:02X}", token.start, token.end, "byte", parts)
    shown = token.text.replace(METASPACE, " ").strip()
    return Unit(shown or METASPACE, token.start, token.end, _kind(shown), parts)


def _kind(text: str) -> UnitKind:
    """A text without letters and digits is punctuation; a lone space too."""
    return "text" if any(character.isalnum() for character in text) else "punctuation"


def _grouped(text: str, tokens: Sequence[Token], tokenizer: Tokenizer, split_by: SplitBy) -> tuple[Unit, ...]:
    """Group tokens by the words that their characters lie in; a token outside every word is a unit by itself."""
    words = split_text(text, split_by)
    shares = word_shares(_visible_spans(tokens), [(word.start, word.end) for word in words])
    units = [
        _token_unit(tokenizer, position, token)
        for position, token in enumerate(tokens)
        if not words or not shares[position].any()
    ]
    for number, word in enumerate(words):
        positions = shares[:, number].nonzero()[0].tolist()
        if positions:
            parts = tuple((position, float(shares[position, number])) for position in positions)
            units.append(Unit(word.text, word.start, word.end, _kind(word.text), parts))
    return tuple(sorted(units, key=lambda unit: (unit.parts[0][0], unit.start)))


def _visible_spans(tokens: Sequence[Token]) -> list[tuple[int, int]]:
    """Return the span of each token; a lone space gets that of the token it precedes, a special token an empty one."""
    spans: list[tuple[int, int]] = []
    following = (0, 0)
    for token in reversed(tokens):
        if token.id in _SPECIAL:
            following = (0, 0)
        elif token.text.strip(METASPACE):
            following = (token.start, token.end)
        spans.append(following)
    return spans[::-1]
