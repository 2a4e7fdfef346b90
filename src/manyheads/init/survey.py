"""What the data looks like: how many rows, how clean, how long, with which labels, in which languages."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from random import Random

from manyheads.data.cleaning import KEPT, CleanSettings, clean, tolerate_bad_lines
from manyheads.errors import DataError
from manyheads.init.data_files import base_of, language_of_text
from manyheads.run.corpus import Corpus
from manyheads.run.recipe import DataSettings
from manyheads.tasks import TASKS, ClassifySettings, Seq2SeqSettings, TagSettings, TaskSettings
from manyheads.text.readers import Row
from manyheads.text.suggestions import shortened
from manyheads.text.tag_schemes import tags_to_spans

_MAX_EXAMINED = 100_000  # rows, from all over the files, that are cleaned and measured; the others are only counted
_MAX_COUNTED = 5_000_000  # the most that are counted
_SAMPLE = 20_000  # clean rows to learn a trial vocabulary from and to train trial steps on
_SAMPLE_CHARACTERS = 3_000_000  # of documents
_MAX_CHARACTERS_EXAMINED = 50_000_000
_N_VALIDATED = 200  # valid rows, as in a run
_FEW_VALUES = 50  # so few different targets are labels, not translations
_ENOUGH_TO_TELL = 1000  # pairs
_MANY_CHARACTERS = 300
_LEAST_CHARACTERS = 2000  # of documents, all together
_RARE = 5  # rows of a label: fewer teach little

Languages = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class DatasetStats:
    """The facts that a proposal is made from."""

    data: DataSettings
    languages: Languages  # "" where it is not known
    n_rows: int  # clean ones to train on
    n_read: int
    n_examined: int  # fewer than were read: the other numbers are extrapolated
    dropped: Mapping[str, int]  # why rows are not trained on, and how many of those looked at
    n_held_out: int  # to validate, where there is no valid set; of documents, in characters
    n_scored: int  # rows that are answered at the end
    sample: tuple[Row, ...]  # clean rows
    task: TaskSettings = field(default_factory=Seq2SeqSettings)
    clean: CleanSettings = field(default_factory=CleanSettings)
    n_characters: int = 0  # of the texts to train on
    n_scored_characters: int = 0
    valid_sample: tuple[Row, ...] = ()  # valid rows that are answered while training
    labels: Mapping[str, int] = field(default_factory=dict)  # or those of spans, the most frequent first
    intents: Mapping[str, int] = field(default_factory=dict)
    unseen_labels: tuple[str, ...] = ()  # labels of the valid or test set that are never learnt from

    @property
    def is_exact(self) -> bool:
        """Whether every row was looked at."""
        return self.n_read == self.n_examined

    @property
    def are_documents(self) -> bool:
        """Whether rows are whole documents, which are counted in characters."""
        return TASKS[self.task.kind].cleaning(self.task).n_fields == 1

    @property
    def noun(self) -> str:
        """What one row is called."""
        return {"seq2seq": "pair", "tag": "sentence"}.get(self.task.kind, "document" if self.are_documents else "row")

    @property
    def texts(self) -> Iterator[str]:
        """The texts of the sample: both sides of pairs, never labels."""
        n_texts = TASKS[self.task.kind].cleaning(self.task).n_texts
        return (text for row in self.sample for text in row[:n_texts])

    @property
    def has_many_characters(self) -> bool:
        """Whether it is written with very many characters, as Chinese is, each of which wants a token of its own."""
        characters = {character for text in self.texts for character in text if "\u3040" <= character <= "\ud7a3"}
        return len(characters) > _MANY_CHARACTERS

    def length_quantile(self, share: float) -> int:
        """The characters of a text, of which this share of all have no more."""
        lengths = sorted(map(len, self.texts))
        return lengths[int(share * (len(lengths) - 1))]

    @property
    def rare_labels(self) -> list[str]:
        """The labels that are seen too seldom to be learnt."""
        return [label for label, count in (*self.labels.items(), *self.intents.items()) if count < _RARE]


def compute_stats(
    data: DataSettings,
    named_languages: Languages = ("", ""),
    requested_languages: Languages = ("", ""),
    task: TaskSettings | None = None,
    cleaning: CleanSettings | None = None,
) -> DatasetStats:
    """Look at a sample of the rows closely, at the others only to count them.

    `named_languages` is the languages as files are called, of which the text may know better; `requested_languages` as the user says.
    """
    task, cleaning = task or Seq2SeqSettings(), cleaning or CleanSettings()
    corpus = Corpus(data, 1, cleaning, task)
    examined, n_read, n_characters_read = _examine(corpus)
    if isinstance(task, Seq2SeqSettings):
        _refuse_labels(data, examined)
    held_out = list(corpus.valid())
    tests = list(corpus.tests()["test"]) if data.test else []
    held_out_set = set() if data.valid else set(held_out)
    counts: Counter[str] = Counter()
    rest = (row for row in examined if row not in held_out_set)
    kept = list(clean(rest, cleaning, counts, [*held_out, *tests], corpus.fields))
    dropped = {reason: count for reason, count in counts.items() if reason != KEPT and count}
    noun = "pair" if isinstance(task, Seq2SeqSettings) else "row"
    if not kept and dropped:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in dropped.items())
        wanted = "Give text and its translation." if noun == "pair" else "Give text."
        raise DataError(f"{_files(data)}: there is no usable {noun} ({reasons}). {wanted}")
    if not kept or not held_out:
        raise DataError(
            f"{_files(data)}: {pluralized(n_read, noun)}, too few to keep any out of training to validate on. "
            "Give more, or a valid set with --valid."
        )
    if isinstance(task, Seq2SeqSettings):
        _refuse_copies(data, kept)
    if corpus.fields.n_fields == 1 and n_characters_read < _LEAST_CHARACTERS:
        raise DataError(
            f"{_files(data)}: {pluralized(n_characters_read, 'character')}, too few to learn from. Give more."
        )
    labels, intents = _labels(task, kept)
    _refuse_one_label(data, task, labels)
    scale = n_read / len(examined)
    n_texts = corpus.fields.n_texts
    return DatasetStats(
        data=data,
        languages=_languages(data, kept[:2000], named_languages, requested_languages)
        if isinstance(task, Seq2SeqSettings)
        else ("", ""),
        n_rows=round(len(kept) * scale),
        n_read=n_read,
        n_examined=len(examined),
        dropped=dropped,
        n_held_out=_n_characters(list(held_out_set), 1) if corpus.fields.n_fields == 1 else len(held_out_set),
        n_scored=len(tests or held_out),
        sample=_sample_of(kept, are_documents=corpus.fields.n_fields == 1),
        task=task,
        clean=cleaning,
        n_characters=round(_n_characters(kept, n_texts) * n_characters_read / max(1, _n_characters(examined, n_texts))),
        n_scored_characters=_n_characters(tests or held_out, n_texts),
        valid_sample=tuple(held_out[:_N_VALIDATED]),
        labels=labels,
        intents=intents,
        unseen_labels=_unseen_labels(task, [*held_out, *tests], {*labels, *intents}),
    )


def _examine(corpus: Corpus) -> tuple[list[Row], int, int]:
    """Rows from all over the training files, how many there are, and of how many characters."""
    data = corpus.data
    if corpus.fields.n_fields == 1:
        return _first_documents(islice(corpus.train(), _MAX_COUNTED))
    read = partial(corpus.task_class.read, data.train, data.columns(), corpus.task)
    examined, n_read = _sample(islice(tolerate_bad_lines(read), _MAX_COUNTED), _MAX_EXAMINED)
    if not examined:
        raise DataError(f"{_files(data)} has no rows. Give more text.")
    return examined, n_read, round(_n_characters(examined, corpus.fields.n_texts) * n_read / len(examined))


def _first_documents(documents: Iterator[Row]) -> tuple[list[Row], int, int]:
    """The first documents, as many as memory bears; the others are only counted."""
    chosen: list[Row] = []
    n_read = n_characters = 0
    for document in documents:
        if n_characters < _MAX_CHARACTERS_EXAMINED and n_read < _MAX_EXAMINED:
            chosen.append(document)
        n_read += 1
        n_characters += len(document[0])
    return chosen, n_read, n_characters


def _sample(rows: Iterator[Row], size: int) -> tuple[list[Row], int]:
    """So many rows, each as likely as any other, and how many there are: files are often sorted by length."""
    chosen = list(islice(rows, size))
    n_read = len(chosen)
    random = Random(1).random
    for row in rows:
        n_read += 1
        place = int(random() * n_read)
        if place < size:
            chosen[place] = row
    return chosen, n_read


def _languages(
    data: DataSettings, pairs: list[Row], named_languages: Languages, requested_languages: Languages
) -> Languages:
    first, second = (language_of_text(" ".join(pair[side] for pair in pairs)) for side in (0, 1))
    if _is_exchanged((first, second), requested_languages):
        remedy = "Exchange the two files." if len(data.train) == 2 else "Exchange --source-column and --target-column."
        raise DataError(
            f"{_files(data)}: the {'source' if first else 'target'} is written in {first or second}, "
            f"but {requested_languages[0] or '?'} → {requested_languages[1] or '?'} is wanted. {remedy}"
        )
    if _is_exchanged((first, second), named_languages):
        named_languages = (named_languages[1], named_languages[0])  # en-zh.tsv whose first column is Chinese
    seen = (first, second)
    source, target = (requested_languages[side] or named_languages[side] or seen[side] for side in (0, 1))
    return source, target


def _is_exchanged(seen: Languages, claimed: Languages) -> bool:
    """Whether a side is written as the other is said to be; where both are written alike, nobody can tell."""
    if seen[0] == seen[1]:
        return False
    return any(seen[side] and seen[side] == base_of(claimed[1 - side]) for side in (0, 1))


def _refuse_copies(data: DataSettings, pairs: list[Row]) -> None:
    n_same = sum(source == target for source, target in pairs)
    if n_same > len(pairs) / 2:
        raise DataError(
            f"{_files(data)}: the target is the same as the source in {n_same:,} of {pluralized(len(pairs), 'pair')}. "
            "Give the text and its translation."
        )


def pluralized(count: int, thing: str) -> str:
    """ "1 pair", "2,000 pairs"."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def _refuse_one_label(data: DataSettings, task: TaskSettings, labels: Mapping[str, int]) -> None:
    if isinstance(task, ClassifySettings) and len(labels) < 2 and not (task.multi_label and labels):
        reason = f"every row has the label “{next(iter(labels))}”" if labels else "no row has a label"
        raise DataError(f"{_files(data)}: {reason}: there is nothing to tell apart. Give rows of at least two labels.")
    if isinstance(task, TagSettings) and not labels:
        raise DataError(f"{_files(data)}: every tag is O: there is nothing to find. Choose another with --tags-column.")


def _refuse_labels(data: DataSettings, pairs: list[Row]) -> None:
    targets = {target for _, target in pairs}
    if len(targets) <= _FEW_VALUES and len(pairs) >= _ENOUGH_TO_TELL:
        examples = shortened(", ".join(sorted(targets)[:3]), 60)
        raise DataError(
            f"{_files(data)}: the targets have only {len(targets)} different values ({examples}): labels rather than "
            "translations. Name the column of the translations with --target-column."
        )


def _files(data: DataSettings) -> str:
    return " + ".join(data.train)


def _sample_of(rows: list[Row], *, are_documents: bool) -> tuple[Row, ...]:
    if not are_documents:
        return tuple(rows[:: -(-len(rows) // _SAMPLE)])
    chosen: list[Row] = []
    left = _SAMPLE_CHARACTERS
    for (text,) in rows[:_SAMPLE]:
        if left <= 0:
            break
        chosen.append((text[:left],))
        left -= len(text)
    return tuple(chosen)


def _n_characters(rows: Sequence[Row], n_texts: int) -> int:
    return sum(len(text) for row in rows for text in row[:n_texts])


def _labels(task: TaskSettings, rows: Sequence[Row]) -> tuple[dict[str, int], dict[str, int]]:
    """How often each label, or label of a span, occurs, and each intent beside them; the most frequent first."""
    labels: Counter[str] = Counter()
    intents: Counter[str] = Counter()
    for row in rows:
        if isinstance(task, ClassifySettings):
            labels.update(task.labels_of(row[1]))
        elif isinstance(task, TagSettings):
            labels.update(span.label for span in tags_to_spans(row[1].split(" "), "IOB2"))
            intents.update(row[2:])
    return dict(labels.most_common()), dict(intents.most_common())


def _unseen_labels(task: TaskSettings, rows: Sequence[Row], known: set[str]) -> tuple[str, ...]:
    return tuple(sorted({label for found in _labels(task, rows) for label in found} - known))
