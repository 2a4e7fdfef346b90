"""`Places`: a text as the model reads it, piece by piece, and all that is asked of these pieces later.

Gold is of words, attention is of pieces, and a piece may hold the end of one word and the beginning of the next, as
in Chinese. So pieces are shared out among words by characters.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from manyheads.errors import LensError
from manyheads.lens.examples import Example
from manyheads.tasks import Tag, Task
from manyheads.text.grammar import Relation, Rendering
from manyheads.text.tokenizer import BEGIN, END, Piece, Tokenizer
from manyheads.text.units import units_of

Span = tuple[int, int]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_WINDOW = 128  # pieces of a long document that are watched at once
_RAREST = 2  # pieces of a text
_MOST_BYTES = 0.5


@dataclass(frozen=True, eq=False)
class Places:
    """One sequence of ids, special ones too, with what is known of each place."""

    ids: NDArray[np.int64]
    is_punctuation: Bools
    shares: Floats  # P × W: how much of a piece belongs to each word; nothing of a special one
    relations: tuple[Relation, ...] = ()
    is_rare: Bools = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))  # the rarest pieces of this text

    @property
    def is_special(self) -> Bools:
        """What is no text: BEGIN and END."""
        return np.isin(self.ids, (BEGIN, END))

    @property
    def written(self) -> Floats:
        """The shares of what is written at each place of a decoder: those of the place that follows."""
        return np.concatenate([self.shares[1:], np.zeros_like(self.shares[:1])])


@dataclass(frozen=True, eq=False)
class Scene:
    """An example as the model reads it: the only text, or source and target."""

    example: Example
    sides: tuple[Places, ...]


@dataclass(frozen=True)
class Scenes:
    """What heads are watched on, and how many examples were too long or empty for that."""

    kept: Sequence[Scene]
    n_left_out: int = 0


def share_out(pieces: Sequence[Span], words: Sequence[Span]) -> Floats:
    """How much of each piece belongs to each word, by the characters they have in common.

    What is in no word, as the space before one, counts nowhere. Words may share their characters.
    """
    if not pieces or not words:
        return np.zeros((len(pieces), len(words)))
    starts, ends = (np.array([span[side] for span in pieces])[:, None] for side in (0, 1))
    word_starts, word_ends = (np.array([span[side] for span in words])[None] for side in (0, 1))
    common = (np.minimum(ends, word_ends) - np.maximum(starts, word_starts)).clip(min=0).astype(np.float64)
    held = np.zeros(int(ends.max()) + 1, dtype=np.int64)  # characters that some word has, counted up
    for start, end in words:
        held[start + 1 : end + 1] = 1
    before = held.cumsum()
    n_held = (before[ends] - before[starts]).astype(np.float64)
    return np.divide(common, n_held, out=np.zeros_like(common), where=n_held > 0)


def to_words(weights: Floats, queries: Floats, keys: Floats) -> Floats:
    """Attention between words: TO a word the sum of its pieces' shares, FROM a word the mean (Clark 2019).

    weights H × Q × K, queries Q × V words, keys K × W words; the result H × V × W. A word of no piece looks nowhere.
    """
    total = queries.sum(0)
    mean = np.divide(queries, total, out=np.zeros_like(queries), where=total > 0)
    return np.asarray(mean.T @ weights @ keys)


def read_all(task: Task, examples: Iterable[Example]) -> Scenes:
    """The examples as the task's model reads them; one too long for it is left out, a long document is cut."""
    examples = list(examples)
    texts = [rendering.text for example in examples for rendering in example.texts]
    pieces = iter(_pieces(task, texts))
    read = [_read(task, example, [next(pieces) for _ in example.texts]) for example in examples]
    kept = [scene for scene in read if scene is not None]
    if not kept:
        raise LensError(
            "There is nothing to watch heads on: every text is empty, or longer than the "
            f"{task.model.settings.max_length:,} places of this model. Split the texts up, or give others."
        )
    return Scenes(_with_rare(kept), len(read) - len(kept))


def refuse_foreign(scenes: Scenes, tokenizer: Tokenizer, where: str) -> None:
    """Refuse text of a language that the model's pieces do not know: it would be spelt byte by byte."""
    ids = np.concatenate([scene.sides[0].ids for scene in scenes.kept])
    is_byte = np.array([tokenizer.byte_of(int(number)) is not None for number in range(tokenizer.vocabulary)])
    share = float(is_byte[ids].mean())
    if share > _MOST_BYTES:
        raise LensError(
            f"{where} does not match this model: {share:.0%} of its pieces are single bytes, so the model has never "
            "learnt such text. Give gold in the language that it reads."
        )


def _read(task: Task, example: Example, sides_pieces: Sequence[list[Piece]]) -> Scene | None:
    """The example as the model reads it, if it is neither empty nor too long; a text without gold may be cut."""
    settings = task.model.settings
    is_pair = settings.has_encoder and settings.has_decoder
    around: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (((BEGIN,), ()),)
    if is_pair:
        around = (((), (END,)), ((BEGIN,), ()))
    if len(example.texts) < len(around):
        return None
    sides = []
    for rendering, pieces, (before, after) in zip(example.texts, sides_pieces, around, strict=False):
        if not is_pair and not rendering.words:
            pieces = pieces[: min(_WINDOW, settings.max_length - 1)]
        if not rendering.text.strip() or len(pieces) >= settings.max_length:
            return None
        sides.append(_places(task.tokenizer, rendering, pieces, before, after))
    return Scene(example, tuple(sides))


def _pieces(task: Task, texts: Sequence[str]) -> list[list[Piece]]:
    if not isinstance(task, Tag):
        return task.tokenizer.pieces_many(texts)
    units = [units_of(text, task.unit) for text in texts]  # a tagger reads unit by unit
    names = list({unit.text for row in units for unit in row})
    known = dict(zip(names, task.tokenizer.pieces_many(names), strict=True))
    return [
        [
            replace(piece, start=piece.start + unit.start, end=piece.end + unit.start)
            for unit in row
            for piece in known[unit.text]
        ]
        for row in units
    ]


def _places(
    tokenizer: Tokenizer,
    rendering: Rendering,
    pieces: Sequence[Piece],
    before: tuple[int, ...],
    after: tuple[int, ...],
) -> Places:
    here = slice(len(before), len(before) + len(pieces))
    ids = np.array([*before, *(piece.id for piece in pieces), *after], dtype=np.int64)
    shares = np.zeros((len(ids), len(rendering.words)))
    shares[here] = share_out([(piece.start, piece.end) for piece in pieces], rendering.spans)
    is_punctuation = np.zeros(len(ids), dtype=np.bool_)
    is_punctuation[here] = [_is_punctuation(tokenizer, piece) for piece in pieces]
    return Places(ids, is_punctuation, shares, rendering.relations)


def _is_punctuation(tokenizer: Tokenizer, piece: Piece) -> bool:
    text = piece.text.replace("▁", "")
    return bool(text) and tokenizer.byte_of(piece.id) is None and not any(one.isalnum() for one in text)


def _with_rare(scenes: Sequence[Scene]) -> list[Scene]:
    """The same with each text's rarest pieces marked, as the whole sample counts them."""
    counts = [Counter[int]() for _ in scenes[0].sides]
    for scene in scenes:
        for count, places in zip(counts, scene.sides, strict=True):
            count.update(places.ids.tolist())
    marked = []
    for scene in scenes:
        sides = []
        for count, places in zip(counts, scene.sides, strict=True):
            often = np.array([count[number] for number in places.ids.tolist()], dtype=np.float64)
            often[places.is_special | places.is_punctuation] = np.inf
            is_rare = np.zeros(len(often), dtype=np.bool_)
            is_rare[np.argsort(often, kind="stable")[:_RAREST]] = True
            sides.append(replace(places, is_rare=is_rare & np.isfinite(often)))
        marked.append(replace(scene, sides=tuple(sides)))
    return marked
