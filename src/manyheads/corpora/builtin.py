"""The built-in translation corpus: sentences in three languages, their splits, gold alignments and gold relations.

The split of a sentence depends only on its content words, so that no text of any language is in two splits. About 4 %
of the (adjective, noun) and (verb, object) pairs never occur in train, valid or test; the sentences that contain one
form the split `compositional`.
"""

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from manyheads.corpora.chinese import chinese
from manyheads.corpora.english import english
from manyheads.corpora.german import german
from manyheads.corpora.syntax_tree import RenderedWord, Tree
from manyheads.corpora.tree_sampler import TreeSampler
from manyheads.errors import DataError

LANGUAGES = ("en", "zh", "de")
SPLITS = ("train", "valid", "test", "compositional")
_RENDERERS: dict[str, Callable[[Tree], list[RenderedWord]]] = {"en": english, "zh": chinese, "de": german}
_HELD_OUT_PERCENT = 4
_VALID_PERCENT = 4
_TEST_PERCENT = 4
_PUNCTUATION = frozenset(".,?")


@dataclass(frozen=True, slots=True)
class Relation:
    """A gold relation between two words of a sentence, given by their positions."""

    kind: str
    word: int
    head: int


@dataclass(frozen=True)
class Rendering:
    """A sentence in one language: text, words, their character spans, and gold relations between words."""

    text: str
    words: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    relations: tuple[Relation, ...]


class Sentence:
    """A syntax tree with its renderings, which are created on demand."""

    __slots__ = ("_renderings", "_tokens", "tree")

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._tokens: dict[str, list[RenderedWord]] = {}
        self._renderings: dict[str, Rendering] = {}

    def tokens(self, language: str) -> list[RenderedWord]:
        """Return the words with the atoms of meaning that they express."""
        if language not in self._tokens:
            check_language(language)
            tokens = _RENDERERS[language](self.tree)
            if language != "zh":
                first, atoms = tokens[0]
                tokens[0] = (first[0].upper() + first[1:], atoms)
            self._tokens[language] = tokens
        return self._tokens[language]

    def text(self, language: str) -> str:
        """Return the sentence as text."""
        if language == "zh":
            return "".join(word for word, _ in self.tokens(language))
        parts = []
        for word, _ in self.tokens(language):
            parts.append(word if word in _PUNCTUATION else " " + word)
        return "".join(parts)[1:]

    def rendering(self, language: str) -> Rendering:
        """Return the text, the words, their spans and the gold relations."""
        if language not in self._renderings:
            self._renderings[language] = self._render(language)
        return self._renderings[language]

    @property
    def renderings(self) -> Mapping[str, Rendering]:
        """The renderings in all languages."""
        return {language: self.rendering(language) for language in LANGUAGES}

    def _render(self, language: str) -> Rendering:
        tokens = self.tokens(language)
        text = self.text(language)
        spans, end = [], 0
        for word, _ in tokens:
            start = text.index(word, end)
            end = start + len(word)
            spans.append((start, end))
        return Rendering(text, tuple(word for word, _ in tokens), tuple(spans), self._relations(tokens))

    def _relations(self, tokens: list[RenderedWord]) -> tuple[Relation, ...]:
        position: dict[int, int] = {}
        for index, (_, atoms) in enumerate(tokens):
            if atoms:
                position.setdefault(atoms[0], index)
        return tuple(
            Relation(kind, position[word], position[head])
            for kind, word, head in self.tree.relations()
            if word in position and head in position
        )

    def alignment(self, source: str, target: str) -> tuple[tuple[int, int], ...]:
        """Return the sorted pairs of positions of words that express the same part of the meaning."""
        positions: dict[int, list[int]] = {}
        for index, (_, atoms) in enumerate(self.tokens(target)):
            for atom in atoms:
                positions.setdefault(atom, []).append(index)
        pairs = {
            (index, other)
            for index, (_, atoms) in enumerate(self.tokens(source))
            for atom in atoms
            for other in positions.get(atom, ())
        }
        return tuple(sorted(pairs))


def check_language(language: str) -> None:
    """Raise if the corpus does not have the language."""
    if language not in LANGUAGES:
        raise DataError(f"corpus language {language!r} is unknown. Use one of: {', '.join(LANGUAGES)}.")


def check_split(split: str) -> None:
    """Raise if the corpus does not have the split."""
    if split not in SPLITS:
        raise DataError(f"corpus split {split!r} is unknown. Use one of: {', '.join(SPLITS)}.")


@cache
def _is_held_out(pair: tuple[str, str]) -> bool:
    return zlib.crc32(f"withheld {pair[0]} {pair[1]}".encode()) % 100 < _HELD_OUT_PERCENT


def split_of(tree: Tree) -> str:
    """Return the split of a tree, which depends only on its content words."""
    if any(map(_is_held_out, tree.combinations())):
        return "compositional"
    return split_by(tree.content_keys())


def split_by(keys: Iterable[str]) -> str:
    """Return train, valid or test, by a hash of the words in any order."""
    bucket = zlib.crc32(" ".join(sorted(keys)).encode()) % 100
    if bucket < _VALID_PERCENT:
        return "valid"
    return "test" if bucket < _VALID_PERCENT + _TEST_PERCENT else "train"


def sentences(split: str, count: int, seed: int = 1) -> Iterator[Sentence]:
    """Yield `count` distinct sentences of a split; equal seeds give equal sentences."""
    check_split(split)
    return _generate(split, count, seed)


def _generate(split: str, count: int, seed: int) -> Iterator[Sentence]:
    sampler = TreeSampler(seed)
    seen: set[str] = set()
    while len(seen) < count:
        tree = sampler.tree()
        if split_of(tree) != split:
            continue
        sentence = Sentence(tree)
        text = sentence.text("en")
        if text not in seen:
            seen.add(text)
            yield sentence


def pairs(source: str, target: str, split: str, count: int, seed: int = 1) -> Iterator[tuple[str, str]]:
    """Yield translation pairs of a split as (source text, target text)."""
    check_language(source)
    check_language(target)
    return ((sentence.text(source), sentence.text(target)) for sentence in sentences(split, count, seed))
