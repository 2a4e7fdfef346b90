"""Examples for the lens: from the bundle's own data, from text files, or from files with gold annotation.

A bundle trained on the built-in corpus has gold annotation: relations, antecedents of pronouns, word alignments. For
other bundles the annotation comes from files (CoNLL-U trees or word alignments), or there is none.
"""

import random
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

from manyheads.bundle import Bundle
from manyheads.corpora import Rendering
from manyheads.corpora.conllu import read_trees
from manyheads.errors import DataError, LensError
from manyheads.messages import _
from manyheads.run import Recipe
from manyheads.run.corpus import Corpus
from manyheads.tasks import Task
from manyheads.tasks.lens_examples import Example, plain_text
from manyheads.text.reading.formats import is_table
from manyheads.text.reading.gold_alignments import AlignedPair, read_alignments
from manyheads.text.reading.readers import Row, read_lines

SAMPLE = 300  # examples
_POOL = 20_000  # rows to draw the sample from
_TREE_SUFFIXES = (".conllu", ".conll")


def sample_examples(bundle: Bundle, count: int = SAMPLE, *, seed: int = 1) -> list[Example]:
    """Draw held-out examples from a bundle's own data: the built-in corpus with its annotation, or validation rows."""
    recipe = Recipe.from_table(bundle.recipe)
    task = bundle.task
    if recipe.data.builtin:
        return task.lens_examples.builtin(task, recipe.data.languages, count, seed)
    corpus = Corpus.of(recipe)
    try:
        rows = list(islice(task.usable(corpus.valid()), _POOL))
    except DataError as error:
        raise LensError(
            _("The validation data of this bundle cannot be read ({error}) Give --text.", error=error)
        ) from None
    if not rows:
        raise LensError(_("The validation data of this bundle is empty. Give --text."))
    return _draw([example for row in rows for example in task.lens_examples.from_row(row)], count, seed)


def read_examples(task: Task, files: Sequence[Path], count: int = SAMPLE, *, seed: int = 1) -> list[Example]:
    """Read examples from a text file with one text per line; pairs from two parallel files or a table.

    A single text file for a task with pairs holds sources; `with_targets` adds the targets.
    """
    if task.lens_examples.n_texts == 2 and (len(files) > 1 or is_table(files[0])):
        rows: Iterable[Row] = task.read([str(file) for file in files], {}, task.settings)
        pairs = [row for row in islice(rows, _POOL) if all(text.strip() for text in row)]
        examples = [example for row in pairs for example in task.lens_examples.from_row(row)]
        return _draw(_require_examples(examples, files[0]), count, seed)
    if len(files) > 1:
        raise LensError(
            _(
                "--text was given {n_files} files, but this model reads one text at a time. Give one file.",
                n_files=len(files),
            )
        )
    lines = [line for line in islice(read_lines(files[0]), _POOL) if line.strip()]
    return _draw(_require_examples([Example((plain_text(line),)) for line in lines], files[0]), count, seed)


def read_gold(task: Task, files: Sequence[Path], count: int = SAMPLE, *, lower: bool = False) -> list[Example]:
    """Read annotated examples: CoNLL-U trees, and word alignments as text files followed by a file of links.

    `lower` lower-cases the text, for a model trained on lower-cased text.
    """
    examples: list[Example] = []
    alignment_files: list[Path] = []
    for file in files:
        if file.suffix in _TREE_SUFFIXES:
            trees = (tree for tree in read_trees(file) if tree.text)
            examples += _draw([Example((_lowered(tree) if lower else tree,)) for tree in trees], count, seed=1)
        else:
            alignment_files.append(file)
    if alignment_files:
        if not task.model.settings.has_encoder or not task.model.settings.has_decoder:
            raise LensError(
                _(
                    "{file}: gold alignments need a model with cross-attention; this model has none.",
                    file=alignment_files[0],
                )
            )
        if len(alignment_files) not in (2, 3):
            raise LensError(
                _(
                    "{files}: give gold alignments as source words, target words and links, or as words "
                    "(source ||| target) and links; give trees as .conllu files.",
                    files=", ".join(map(str, alignment_files)),
                )
            )
        pairs = read_alignments(alignment_files[:-1], alignment_files[-1])
        examples += _draw([_aligned(pair, lower=lower) for pair in pairs], count, seed=1)
    return examples


def with_targets(bundle: Bundle, examples: Sequence[Example]) -> list[Example]:
    """Add the model's own greedy translation to pairs that have only a source."""
    task = bundle.task
    if task.lens_examples.n_texts == 1:
        return list(examples)
    incomplete = [number for number, example in enumerate(examples) if len(example.texts) == 1]
    sources = [examples[number].texts[0].text for number in incomplete]
    readable = [source if _is_readable(task, source) else "" for source in sources]
    targets = bundle.predict(readable, method="greedy") if incomplete else []
    completed = list(examples)
    for number, target in zip(incomplete, targets, strict=True):
        completed[number] = Example((*examples[number].texts, plain_text(target)))
    return completed


def _is_readable(task: Task, text: str) -> bool:
    try:
        task.check(text, "")
    except DataError:
        return False
    return True


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
    """Lower-case the text, except characters such as İ whose lower case has another length: offsets must hold."""
    text = "".join(low if len(low := character.lower()) == 1 else character for character in tree.text)
    return Rendering(text, tree.words, tree.spans, tree.relations)


def _require_examples(examples: list[Example], file: Path) -> list[Example]:
    if not examples:
        raise LensError(_("{file} has no text: every line is empty.", file=file))
    return examples


def _draw(examples: list[Example], count: int, seed: int) -> list[Example]:
    """Draw `count` examples by the seed, in their original order."""
    if len(examples) <= count:
        return examples
    chosen = sorted(random.Random(seed).sample(range(len(examples)), count))
    return [examples[number] for number in chosen]
