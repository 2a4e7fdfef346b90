"""`Example`: a text on which the lens observes heads, with the gold annotation that is known for it.

A task describes its examples in the class attribute `lens_examples`: how many texts an example has, how a row becomes
examples, which of them the built-in corpus annotates, and how the model reads a text as tokens.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from manyheads import corpora
from manyheads.corpora import Relation, Rendering
from manyheads.text.reading.gold_alignments import Link
from manyheads.text.reading.readers import Row
from manyheads.text.tokens.tokenizer import Token

HELD_OUT = "test"  # the split of the built-in corpus
RELATIVE = "relative"  # the relation of a relative pronoun to its antecedent
_MAX_CHARACTERS = 400  # of a passage
_RELATIVE_PRONOUNS = {"who", "whom", "that", "which", "der", "die", "das", "den", "dem", "denen"}


@dataclass(frozen=True)
class Example:
    """One text, or source and target; with the links between their words if they are known."""

    texts: tuple[Rendering, ...]
    sure: frozenset[Link] | None = None
    possible: frozenset[Link] | None = None

    @property
    def has_gold_alignment(self) -> bool:
        """Whether the links between the words are known."""
        return self.sure is not None


class LensExamples(Protocol):
    """How a task makes examples for the lens."""

    @property
    def n_texts(self) -> int:
        """The number of texts in an example: 1, or 2 for source and target."""

    def from_row(self, row: Row) -> list[Example]:
        """Return the examples of one row of the task's data."""

    def builtin(self, task: Any, languages: Sequence[str], count: int, seed: int) -> list[Example]:
        """Return held-out examples of the built-in corpus, with the annotation it has for this task."""

    def suggestion(self, task: Any, text: str) -> str:
        """Return what to give the task's model to answer, made of the first text of an example."""

    def tokenize(self, task: Any, texts: Sequence[str]) -> list[list[Token]]:
        """Return the tokens of each text, as the task's model reads it."""


def plain_text(text: str) -> Rendering:
    """Return a text without annotation."""
    return Rendering(text, (), (), ())


def tokenize_texts(task: Any, texts: Sequence[str]) -> list[list[Token]]:
    """Return the tokens of each text, tokenized as a whole."""
    tokens: list[list[Token]] = task.tokenizer.tokenize_batch(texts)
    return tokens


@dataclass(frozen=True)
class TextExamples:
    """Examples of one text each.

    With `is_annotated`, the built-in corpus of the task has the words and relations of its sentences. `tokenizer` is
    for tasks whose models do not read a text as a whole, `suggest` for those that answer to a part of it.
    """

    is_annotated: bool = False
    tokenizer: Callable[[Any, Sequence[str]], list[list[Token]]] = tokenize_texts
    suggest: Callable[[Any, str], str] = lambda task, text: text
    n_texts: int = 1

    def from_row(self, row: Row) -> list[Example]:
        """Return the passages of a text."""
        return [Example((plain_text(passage),)) for passage in _passages(row[0])]

    def builtin(self, task: Any, languages: Sequence[str], count: int, seed: int) -> list[Example]:
        """Return annotated sentences, or the rows of the task's own built-in corpus."""
        if self.is_annotated:
            (language,) = languages
            sentences = corpora.sentences(HELD_OUT, count, seed)
            return [Example((with_relatives(sentence.rendering(language)),)) for sentence in sentences]
        rows = task.builtin(task.settings, languages, HELD_OUT, count, seed)
        return [example for row in rows for example in self.from_row(row)]

    def suggestion(self, task: Any, text: str) -> str:
        """Return the text, or what the task makes of it."""
        return self.suggest(task, text)

    def tokenize(self, task: Any, texts: Sequence[str]) -> list[list[Token]]:
        """Return the tokens of each text."""
        return self.tokenizer(task, texts)


def with_relatives(rendering: Rendering) -> Rendering:
    """Give relative pronouns a relation of their own.

    Their antecedent is usually the word before them, so they would make the relation of all pronouns seem easy.
    """
    relations = tuple(
        Relation(RELATIVE, relation.word, relation.head)
        if relation.kind == "antecedent" and rendering.words[relation.word].lower() in _RELATIVE_PRONOUNS
        else relation
        for relation in rendering.relations
    )
    return Rendering(rendering.text, rendering.words, rendering.spans, relations)


def _passages(text: str) -> Iterator[str]:
    """Split a long text into passages, at the end of a line or a word if possible."""
    while len(text) > _MAX_CHARACTERS:
        line_end = text.rfind("\n", 0, _MAX_CHARACTERS)
        word_end = text.rfind(" ", 0, _MAX_CHARACTERS) if "\n" not in text[:_MAX_CHARACTERS] else -1
        end = max(line_end, word_end)
        end = end + 1 if end > 0 else _MAX_CHARACTERS
        if text[:end].strip():
            yield text[:end]
        text = text[end:]
    if text.strip():
        yield text
