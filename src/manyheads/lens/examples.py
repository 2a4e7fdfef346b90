"""`Example`: a text that heads are watched on, with whatever gold is known of it; and where examples come from.

A bundle trained on the built-in corpus has gold of its own: relations, pronouns' antecedents, word alignments. Any
other takes gold from files, CoNLL-U trees or word alignments, or does without.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from manyheads import corpora
from manyheads.bundle import Bundle
from manyheads.corpora import Relation, Rendering
from manyheads.corpora.conllu import read_trees
from manyheads.errors import DataError, LensError
from manyheads.run import Recipe
from manyheads.run.corpus import Corpus
from manyheads.tasks import Masked, Seq2Seq, Tag, Task
from manyheads.text.gold_alignments import AlignedPair, Link, read_alignments
from manyheads.text.readers import Row, read_lines

SAMPLE = 300  # examples, unless told otherwise
_HELD_OUT = "test"  # of the built-in corpus
_POOL = 20_000  # rows that a sample is drawn from
_TREES = (".conllu", ".conll")
_TABLES = (".tsv", ".csv", ".jsonl", ".parquet")
_PASSAGE = 400  # characters
_RELATIVE = "relative"  # pronouns, whose antecedent stands next to them


@dataclass(frozen=True)
class Example:
    """What is read and, of a pair, what is written; links between their words where they are known."""

    texts: tuple[Rendering, ...]
    sure: frozenset[Link] | None = None
    possible: frozenset[Link] | None = None

    @property
    def has_gold_alignment(self) -> bool:
        """Whether the links between its words are known."""
        return self.sure is not None


def plain_text(text: str) -> Rendering:
    """A text of which nothing more is known."""
    return Rendering(text, (), (), ())


def sample_examples(bundle: Bundle, count: int = SAMPLE, *, seed: int = 1) -> list[Example]:
    """Held-out examples of a bundle's own data: of the built-in corpus with gold, else of the valid text."""
    recipe = Recipe.from_table(bundle.recipe)
    if recipe.data.builtin:
        return builtin_examples(bundle.task, recipe.data.languages, count, seed)
    corpus = Corpus.of(recipe)
    try:
        rows = list(islice(bundle.task.usable(corpus.valid()), _POOL))
    except DataError as error:
        raise LensError(f"The valid text that this bundle was trained by is not there ({error}) Give --text.") from None
    if not rows:
        raise LensError("The valid text that this bundle was trained by is empty. Give --text.")
    return _drawn([example for row in rows for example in _examples(bundle.task, row)], count, seed)


def builtin_examples(task: Task, languages: Sequence[str], count: int, seed: int) -> list[Example]:
    """Held-out sentences of the built-in corpus with their gold; of a task with texts of its own, those."""
    if isinstance(task, Seq2Seq):
        source, target = languages
        examples = []
        for sentence in corpora.sentences(_HELD_OUT, count, seed):
            links = frozenset(sentence.alignment(source, target))
            texts = tuple(_with_relatives(sentence.rendering(language)) for language in languages)
            examples.append(Example(texts, links, links))
        return examples
    (language,) = languages
    if isinstance(task, Tag | Masked):
        found = corpora.sentences(_HELD_OUT, count, seed)
        return [Example((_with_relatives(sentence.rendering(language)),)) for sentence in found]
    rows = task.builtin(task.settings, languages, _HELD_OUT, count, seed)
    return [example for row in rows for example in _examples(task, row)]


def _with_relatives(rendering: Rendering) -> Rendering:
    """A relative pronoun's antecedent is its neighbour, and would make any pronoun seem easy: it is told apart."""
    kinds = {"who", "whom", "that", "which", "der", "die", "das", "den", "dem", "denen"}
    relations = tuple(
        Relation(_RELATIVE, one.word, one.head)
        if one.kind == "antecedent" and rendering.words[one.word].lower() in kinds
        else one
        for one in rendering.relations
    )
    return Rendering(rendering.text, rendering.words, rendering.spans, relations)


def read_examples(task: Task, files: Sequence[Path], count: int = SAMPLE, *, seed: int = 1) -> list[Example]:
    """Examples from plain text, a line each; of pairs from two parallel files or a table.

    A translator that is given one side alone writes the other itself.
    """
    if isinstance(task, Seq2Seq) and (len(files) > 1 or files[0].suffix in _TABLES):
        rows: Iterable[Row] = task.read([str(file) for file in files], {}, task.settings)
        pairs = [row for row in islice(rows, _POOL) if all(part.strip() for part in row)]
        examples = [example for row in pairs for example in _examples(task, row)]
        return _drawn(_or_refuse(examples, files[0]), count, seed)
    if len(files) > 1:
        raise LensError(f"{len(files)} files are given as --text, but this model reads one text at a time. Give one.")
    lines = [line for line in islice(read_lines(files[0]), _POOL) if line.strip()]
    return _drawn(_or_refuse([Example((plain_text(line),)) for line in lines], files[0]), count, seed)


def read_gold(task: Task, files: Sequence[Path], count: int = SAMPLE, *, lower: bool = False) -> list[Example]:
    """Examples from gold files: CoNLL-U trees, and word alignments as texts followed by a file of links.

    `lower`: the text is lower-cased before the model reads it, as it was for training.
    """
    examples: list[Example] = []
    texts: list[Path] = []
    for file in files:
        if file.suffix in _TREES:
            found = (Example((_lowered(tree) if lower else tree,)) for tree in read_trees(file) if tree.text)
            examples += _drawn(list(found), count, seed=1)
        else:
            texts.append(file)
    if texts:
        if not task.model.settings.has_encoder or not task.model.settings.has_decoder:
            raise LensError(f"{texts[0]}: gold alignments are for translators; this model has no cross-attention.")
        if len(texts) not in (2, 3):
            raise LensError(
                f"{', '.join(map(str, texts))}: gold alignments are given as source words, target words and links, or "
                "as words (source ||| target) and links; trees as .conllu files."
            )
        pairs = read_alignments(texts[:-1], texts[-1])
        examples += _drawn([_aligned(pair, lower=lower) for pair in pairs], count, seed=1)
    return examples


def with_targets(bundle: Bundle, examples: Sequence[Example]) -> list[Example]:
    """The same; where a translator was given the source alone, with what it writes for it."""
    if not isinstance(bundle.task, Seq2Seq):
        return list(examples)
    alone = [number for number, example in enumerate(examples) if len(example.texts) == 1]
    sources = [examples[number].texts[0].text for number in alone]
    readable = [source if bundle.task.fits(source) else "" for source in sources]
    written = bundle.predict(readable, method="greedy") if alone else []
    completed = list(examples)
    for number, text in zip(alone, written, strict=True):
        completed[number] = Example((*examples[number].texts, plain_text(text)))
    return completed


def _aligned(pair: AlignedPair, *, lower: bool) -> Example:
    sides = [_joined([word.lower() if lower else word for word in words]) for words in (pair.source, pair.target)]
    return Example(tuple(sides), pair.sure, pair.possible)


def _joined(words: Sequence[str]) -> Rendering:
    spans, end = [], -1
    for word in words:
        spans.append((end + 1, end + 1 + len(word)))
        end = spans[-1][1]
    return Rendering(" ".join(words), tuple(words), tuple(spans), ())


def _lowered(tree: Rendering) -> Rendering:
    """The same in lower case, unless that moves the characters, as of İ."""
    text = "".join(low if len(low := one.lower()) == 1 else one for one in tree.text)
    return Rendering(text, tree.words, tree.spans, tree.relations)


def _examples(task: Task, row: Row) -> list[Example]:
    """A pair as it is; a long text as passages."""
    if isinstance(task, Seq2Seq):
        return [Example((plain_text(row[0]), plain_text(row[1])))]
    return [Example((plain_text(passage),)) for passage in _passages(row[0])]


def _passages(text: str) -> Iterator[str]:
    """Stretches of a text, none longer than a paragraph, cut where a line or a word ends if it can be."""
    while len(text) > _PASSAGE:
        end = max(text.rfind("\n", 0, _PASSAGE), text.rfind(" ", 0, _PASSAGE) if "\n" not in text[:_PASSAGE] else -1)
        end = end + 1 if end > 0 else _PASSAGE
        if text[:end].strip():
            yield text[:end]
        text = text[end:]
    if text.strip():
        yield text


def _or_refuse(examples: list[Example], file: Path) -> list[Example]:
    if not examples:
        raise LensError(f"{file} holds no text to watch heads on: every line is empty.")
    return examples


def _drawn(examples: list[Example], count: int, seed: int) -> list[Example]:
    """As many of them, drawn by the seed, in their order."""
    if len(examples) <= count:
        return examples
    chosen = sorted(random.Random(seed).sample(range(len(examples)), count))
    return [examples[number] for number in chosen]
