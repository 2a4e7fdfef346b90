"""Survey a data set: how many rows, how clean, how long, with which labels, in which languages."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate, chain, islice
from random import Random
from typing import Any

from manyheads.data.cleaning import KEPT, CleanSettings, clean, tolerate_bad_lines
from manyheads.data.split import HELD_OUT, NOTHING_TO_VALIDATE_ON, without
from manyheads.errors import DataError
from manyheads.messages import _, _n
from manyheads.metrics import reasons_name
from manyheads.run.corpus import Corpus
from manyheads.run.recipe import DataSettings, Recipe
from manyheads.tasks import DEFAULT_KIND, TASKS
from manyheads.tasks.proposal import Survey
from manyheads.text.reading.readers import Row

_MAX_EXAMINED = 100_000  # rows that are cleaned and measured, drawn from all the files; others are only counted
_MAX_COUNTED = 5_000_000
_SAMPLE = 20_000  # clean rows to train a trial tokenizer and trial steps on
_SAMPLE_CHARACTERS = 3_000_000  # of that sample
_VALID_CHARACTERS = 1_000_000  # of the rows to measure validation on
_MAX_CHARACTERS_EXAMINED = 50_000_000
_MIN_CHARACTERS = 2000  # of all documents together


def survey(
    data: DataSettings,
    task: Any = None,
    cleaning: CleanSettings | None = None,
    *,
    named_languages: tuple[str, str] = ("", ""),
    requested_languages: tuple[str, str] = ("", ""),
) -> Survey:
    """Examine a sample of the rows and count the others.

    `named_languages` come from file names, which the text may contradict; `requested_languages` from the user.
    """
    task, cleaning = task or TASKS[DEFAULT_KIND].settings_type(), cleaning or CleanSettings()
    corpus = Corpus(data, 1, cleaning, task)
    part, fields, where = corpus.task_class.init, corpus.fields, " + ".join(data.train)
    are_documents = fields.n_fields == 1
    examined, n_read, n_characters_read = _examine(corpus, where)
    part.check_rows(examined, where)
    valid_dropped: Counter[str] = Counter()
    held_out = list(corpus.valid(valid_dropped))
    if not held_out and valid_dropped:
        raise DataError(NOTHING_TO_VALIDATE_ON)
    tests = list(corpus.tests()["test"]) if data.test else []
    # Documents lack the end of the text already.
    held_out_of_training = dict.fromkeys(() if data.valid or are_documents else held_out)
    dropped: Counter[str] = Counter()
    rest = without(examined, held_out_of_training, dropped)
    # Rows are not read again for it; of documents, whole ones are held out of the examined ones.
    unseen = corpus.split.held_out(()) if are_documents else [*held_out, *tests]
    kept = list(clean(rest, cleaning, dropped, unseen, fields))
    dropped = Counter({reason: count for reason, count in dropped.items() if reason != KEPT and count})
    if not kept and {*dropped} - {HELD_OUT}:
        raise DataError(
            _(
                "{where}: there is no usable {noun} ({reasons}). {advice}",
                where=where,
                noun=row_noun(part.noun),
                reasons=reasons_name(dropped),
                advice=part.advice,
            )
        )
    if not kept or not held_out:
        raise DataError(
            _(
                "{where}: {rows}, too few to keep any out of training to validate on. Give more, or a valid set with "
                "--valid.",
                where=where,
                rows=count_of(part.noun, n_read),
            )
        )
    if are_documents and n_characters_read < _MIN_CHARACTERS:
        raise DataError(
            _(
                "{where}: {characters}, too few to learn from. Give more.",
                where=where,
                characters=count_of("character", n_characters_read),
            )
        )
    counts = part.count_labels(kept, task)
    part.check_clean_rows(kept, counts, task, where)
    unseen_labels = part.count_labels([*held_out, *tests], task).names - counts.names
    share_kept = _n_characters(kept, fields.n_texts) / max(1, _n_characters(examined, fields.n_texts))
    return Survey(
        settings=task,
        fields=fields,
        noun=part.noun,
        n_rows=round(len(kept) * (n_read / len(examined))),
        n_read=n_read,
        n_examined=len(examined),
        sample=_sample_documents(kept) if are_documents else _sample_rows(kept),
        dropped=dict(dropped),
        n_held_out=0 if data.valid else _n_characters(held_out, 1) if are_documents else len(held_out_of_training),
        n_scored=len(tests or held_out),
        clean=cleaning,
        n_characters=round(share_kept * n_characters_read),
        n_scored_characters=_n_characters(tests or held_out, fields.n_texts),
        valid_sample=_first_rows(held_out[: part.n_validated]),
        n_validated=min(part.n_validated, len(held_out)),
        languages=part.languages(kept, named_languages, requested_languages, data.train),
        counts=counts,
        unseen_labels=tuple(sorted(unseen_labels)),
        row_label=part.row_label(task),
    )


def count_of(noun: str, n: int) -> str:
    """Return a number of rows, or of characters: "2,000 pairs"."""
    match noun:
        case "pair":
            return _n("1 pair", "{n:,} pairs", n)
        case "sentence":
            return _n("1 sentence", "{n:,} sentences", n)
        case "document":
            return _n("1 document", "{n:,} documents", n)
        case "character":
            return _n("1 character", "{n:,} characters", n)
    return _n("1 row", "{n:,} rows", n)


def row_noun(noun: str) -> str:
    """Return what a row is called."""
    return {"pair": _("pair"), "sentence": _("sentence"), "document": _("document")}.get(noun, _("row"))


def survey_recipe(recipe: Recipe) -> tuple[Survey, float]:
    """Sample the rows of a recipe, without checking them; return how long a run reads them, in CPU seconds, as well.

    Unlike `survey`, this takes the built-in corpus and mixes of corpora too.
    """
    corpus = Corpus.of(recipe)
    part, fields = corpus.task_class.init, corpus.fields
    are_documents = fields.n_fields == 1
    started = time.process_time()
    if recipe.data.builtin and not are_documents:
        examined, n_read = list(islice(corpus.train(), _SAMPLE)), recipe.data.builtin_rows
        n_characters = round(_n_characters(examined, fields.n_texts) * n_read / max(1, len(examined)))
    elif are_documents:
        examined, n_read, n_characters = _first_documents(islice(corpus.train(), _MAX_COUNTED))
    else:
        examined, n_read = _sample(islice(corpus.train(), _MAX_COUNTED), _MAX_EXAMINED)
        n_characters = round(_n_characters(examined, fields.n_texts) * n_read / max(1, len(examined)))
    kept = list(clean(examined, corpus.cleaning, Counter(), (), fields))
    seconds = (time.process_time() - started) * n_read / max(1, len(examined))
    held_out = list(corpus.valid())
    tests = list(chain.from_iterable(corpus.tests().values()))
    if not kept or not held_out:
        raise DataError(_("There are too few rows to train and to validate on."))
    share = len(kept) / len(examined)
    result = Survey(
        settings=recipe.task,
        fields=fields,
        noun=part.noun,
        n_rows=round(share * n_read),
        n_read=n_read,
        n_examined=len(examined),
        sample=_sample_documents(kept) if are_documents else _sample_rows(kept),
        n_scored=len(tests),
        clean=corpus.cleaning,
        n_characters=round(share * n_characters),
        n_scored_characters=_n_characters(tests, fields.n_texts),
        valid_sample=_first_rows(held_out[: part.n_validated]),
        n_validated=min(part.n_validated, len(held_out)),
    )
    return result, seconds


def _examine(corpus: Corpus, where: str) -> tuple[list[Row], int, int]:
    """A sample of the training rows, the number of all rows, and the number of their characters."""
    data = corpus.data
    if corpus.fields.n_fields == 1:
        return _first_documents(islice(chain.from_iterable(corpus.split.training_sets()), _MAX_COUNTED))
    read = partial(corpus.task_class.read, data.train, data.columns(), corpus.task)
    examined, n_read = _sample(islice(tolerate_bad_lines(read), _MAX_COUNTED), _MAX_EXAMINED)
    if not examined:
        raise DataError(_("{where} has no rows. Give more text.", where=where))
    return examined, n_read, round(_n_characters(examined, corpus.fields.n_texts) * n_read / len(examined))


def _first_documents(documents: Iterator[Row]) -> tuple[list[Row], int, int]:
    """The first documents, limited by memory; the others are only counted."""
    first: list[Row] = []
    n_read = n_characters = 0
    for document in documents:
        if n_characters < _MAX_CHARACTERS_EXAMINED and n_read < _MAX_EXAMINED:
            first.append(document)
        n_read += 1
        n_characters += len(document[0])
    return first, n_read, n_characters


def _sample(rows: Iterable[Row], size: int, max_characters: int = _MAX_CHARACTERS_EXAMINED) -> tuple[list[Row], int]:
    """A uniform sample of the rows (reservoir sampling), since files are often sorted by length; and their number.

    Of rows that are very long there are fewer than `size`: half of the sample is dropped whenever it is too large.
    """
    random = Random(1)
    reservoir: list[Row] = []
    n_read = n_characters = 0
    for row in rows:
        n_read += 1
        if len(reservoir) < size:
            reservoir.append(row)
        else:
            index = int(random.random() * n_read)
            if index >= size:
                continue
            n_characters -= _length(reservoir[index])
            reservoir[index] = row
        n_characters += _length(row)
        while n_characters > max_characters and len(reservoir) > 1:
            size = len(reservoir) // 2
            reservoir = random.sample(reservoir, size)
            n_characters = sum(map(_length, reservoir))
    return reservoir, n_read


def _sample_rows(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Every n-th row, so that there are neither too many rows nor too many characters."""
    n_characters = sum(map(_length, rows))
    step = max(-(-len(rows) // _SAMPLE), -(-n_characters // _SAMPLE_CHARACTERS))
    return tuple(rows[::step])


def _first_rows(rows: Sequence[Row]) -> tuple[Row, ...]:
    """The first rows up to `_VALID_CHARACTERS`; one at least."""
    ends = accumulate(map(_length, rows))
    n_rows = sum(1 for end in ends if end <= _VALID_CHARACTERS)
    return tuple(rows[: max(1, n_rows)])


def _sample_documents(rows: Sequence[Row]) -> tuple[Row, ...]:
    sample: list[Row] = []
    n_left = _SAMPLE_CHARACTERS
    for (text,) in rows[:_SAMPLE]:
        if n_left <= 0:
            break
        sample.append((text[:n_left],))
        n_left -= len(text)
    return tuple(sample)


def _length(row: Row) -> int:
    return sum(map(len, row))


def _n_characters(rows: Sequence[Row], n_texts: int) -> int:
    return sum(len(text) for row in rows for text in row[:n_texts])
