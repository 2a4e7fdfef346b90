"""The tag task's parts of `init`, `doctor` and `quickstart`.

`init` looks for words with tags such as B-PER, in columns, lists or parallel files. `doctor` checks types of entities,
inconsistent tags, and sentences without entities.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from manyheads.errors import DataError
from manyheads.messages import Message, _
from manyheads.tasks.columns import Column
from manyheads.tasks.data_files import DataFiles, FolderListing
from manyheads.tasks.findings import MAX_EXAMPLES, Finding, excerpt, share, verdict_of
from manyheads.tasks.labels import check_contradictions, check_labels
from manyheads.tasks.pretrained import (
    FINE_TUNING_BUDGET,
    UPPER,
    WHOLE,
    Pretrained,
    fine_tuning_choices,
    origin_choices,
)
from manyheads.tasks.proposal import (
    FEW_ROWS,
    N_SPARE_TOKENS,
    Choice,
    Demo,
    LabelCounts,
    Predict,
    Proposal,
    Quickstart,
    Survey,
    count_epochs,
    count_labels,
    dropout_for,
    encoder_choices,
    encoder_proposal,
    text_tokens,
    token_choices,
    training_choices,
)
from manyheads.tasks.tag.tag_training import TagSettings, iob2_spans
from manyheads.tasks.task_doctor import ENTITY_TYPE, INTENT, Sample, Source, TaskDoctor
from manyheads.tasks.task_init import Request, TaskGuess, TaskInit, column_names, requested_column, text_column
from manyheads.text.reading.formats import is_table
from manyheads.text.reading.readers import Row
from manyheads.text.reading.tag_schemes import tags_to_spans
from manyheads.text.reading.tagged_readers import TAGGED_FILES

_LENGTHS = (128, 256, 512)  # tokens


_SPAN_NAMES = ("spans", "entities", "label", "labels", "tags")  # of columns with spans by offsets, in labeling tools


class TagInit(TaskInit):
    """Recognizes words with tags, and intents beside them."""

    kind = "tag"
    cli_name = "tag"
    order = 10
    noun = "sentence"
    columns = ("text", "tags", "label")
    own_columns = frozenset({"tags"})
    is_labeled = True
    starts_from_encoder = True
    takes_columns_of_lines = True  # CoNLL columns have numbers
    n_validated = 1000  # the F1 of fewer sentences is noisy
    takes_scheme = True

    def files_in(self, listing: FolderListing, request: Request) -> Sequence[Path] | None:
        """seq.in, seq.out and label."""
        names = {path.name for path in listing.files}
        if not {*TAGGED_FILES[:2]} <= names:
            return None
        return [listing.folder / name for name in TAGGED_FILES if name in names]

    def recognize(self, files: DataFiles, request: Request) -> TaskGuess | None:
        """A table with a column of tags, a CoNLL file, or parallel files of words and tags."""
        if files.is_table:
            return self._recognize_table(files, request)
        if files.is_conll:
            return TaskGuess(_("its lines are words with tags, with a blank line between sentences"))
        columns = files.parallel
        if columns and columns[1].are_tags and columns[0].has_as_many_words(columns[1]):
            words, tags, *intent = (path.name for path in files.paths)
            reason = _("the lines of {tags} are tags for the words of {words}", tags=tags, words=words)
            if intent:
                reason += _(", and {intent} has their intents", intent=intent[0])
            return TaskGuess(reason, settings={"intents": bool(intent)})
        return None

    def requested_guess(self, files: DataFiles, request: Request) -> TaskGuess:
        """Three files are words, tags and intents."""
        settings = {"intents": True} if len(files.paths) == 3 else {}
        return TaskGuess(request.reason, request.columns, settings)

    def _recognize_table(self, files: DataFiles, request: Request) -> TaskGuess | None:
        path, columns = files.paths[0], files.columns
        requested = requested_column(files, request, "tags")
        if guess := self._recognize_spans(files, request, requested):
            return guess
        tags = requested or next((column for column in columns if column.are_tags), None)
        if tags is None or not (tags.are_tags or _are_word_labels(tags, columns)):
            _refuse_tag_ids(files)
            if not self.is_requested(request):
                return None
            raise DataError(
                _(
                    "{path}: no column holds tags such as B-PER, I-PER and O (columns: {columns}). Name it "
                    "with --tags-column.",
                    path=path,
                    columns=column_names(columns),
                )
            )
        words = requested_column(files, request, "text") or next(
            (column for column in columns if column is not tags and column.has_as_many_words(tags)), None
        )
        if words is None:
            raise DataError(
                _(
                    "{path}: column {name} holds tags, but no other has as many words. Give every word its tag, "
                    "with one space between, or name the column of words with --text-column.",
                    path=path,
                    name=tags.name,
                )
            )
        label = requested_column(files, request, "label") or next(
            (column for column in columns if column.is_called_label and column.repeats), None
        )
        chosen = {"text": words.name, "tags": tags.name} | ({"label": label.name} if label else {})
        reason = _("column {tags} holds tags for the words of {words}", tags=tags.name, words=words.name)
        if label:
            reason += _(" and {name} an intent for each text", name=label.name)
        return TaskGuess(reason, chosen, {"intents": label is not None})

    def _recognize_spans(self, files: DataFiles, request: Request, requested: Column | None) -> TaskGuess | None:
        """A raw text and a column of spans by character offsets, as labeling tools export them."""
        columns = [requested] if requested else sorted(files.columns, key=lambda one: one.name not in _SPAN_NAMES)
        spans = next((column for column in columns if column.are_spans), None)
        if spans is None:
            return None
        text = text_column(files, [column for column in files.columns if not column.are_lists], request)
        if text is None:
            raise DataError(
                _(
                    "{path}: column {name} holds spans, but no column their texts. Name it with --text-column.",
                    path=files.paths[0],
                    name=spans.name,
                )
            )
        reason = _("column {tags} holds spans of the texts of {words}", tags=spans.name, words=text.name)
        return TaskGuess(reason, {"text": text.name, "tags": spans.name})

    def complete(self, guess: TaskGuess, sets: Mapping[str, Sequence[Path]], request: Request) -> TaskGuess:
        """Set the scheme of tags that the user named."""
        if not request.scheme:
            return guess
        return replace(guess, settings={**guess.settings, "scheme": request.scheme})

    def count_labels(self, rows: Sequence[Row], settings: TagSettings) -> LabelCounts:
        """Count the labels of spans, and the intents."""
        spans = ([span.label for span in tags_to_spans(row[1].split(" "), "IOB2")] for row in rows)
        return count_labels(spans, (row[2:] for row in rows))

    def check_clean_rows(self, rows: Sequence[Row], counts: LabelCounts, settings: TagSettings, where: str) -> None:
        """Require a span."""
        if not counts.labels:
            raise DataError(
                _("{where}: every tag is O: there are no spans. Choose another column with --tags-column.", where=where)
            )

    def row_label(self, settings: TagSettings) -> str:
        """Each row has one intent, if rows have intents."""
        return "intent" if settings.intents else ""

    def display_name(self, settings: TagSettings) -> str:
        """The task, and whether it has intents."""
        return _("tag with intents") if settings.intents else "tag"

    def propose(self, survey: Survey, preset: str = "") -> Proposal:
        """An encoder of three layers and a CRF; characters as tokens, if characters are tagged."""
        by_character = _are_characters(survey)
        n_tokens = survey.length_quantile(0.999) / 2 if by_character else text_tokens(survey, 0.999)
        length = next((length for length in _LENGTHS if n_tokens < 0.9 * length), 1024)
        dropout = dropout_for(survey)
        choices = [*(_character_choices(survey) if by_character else token_choices(survey))]
        choices += [
            *_task_choices(survey),
            *encoder_choices(survey, 3, dropout),
            Choice("model.token_dropout", round(dropout / 2, 2), "drops whole tokens, so that the context counts too"),
            Choice("model.max_length", length, "tokens; longer sentences are left out of training"),
            *training_choices(
                batch_tokens=600 if survey.n_rows < FEW_ROWS else 1500,
                learning_rate=2e-3,
                validation_reason=f"steps between validations, on at most {self.n_validated:,} valid sentences",
            ),
            Choice("train.patience", 15, "stop after this many validations without a better one, and keep the best"),
        ]
        return encoder_proposal(choices, 3, count_epochs(survey.n_rows, 35.0, of=13_000, power=0.4))

    def propose_from(self, survey: Survey, origin: Pretrained, preset: str = "") -> Proposal:
        """Fine-tune an encoder; the vector of a word is the mean of its tokens."""
        lengths = origin.lengths(survey)
        length = origin.length_for(lengths, share=1.0)
        reason = f"steps between validations, on at most {self.n_validated:,} valid sentences"
        choices = [
            *origin_choices(origin, preset),
            *_task_choices(survey),
            Choice("task.head_dropout", 0.1, "dropout before the output layer"),
            Choice("model.max_length", length, "tokens; longer sentences are left out of training"),
            Choice("model.attention_dropout", 0.0, "without it, attention is computed faster"),
            *fine_tuning_choices(lengths, length, reason),
        ]
        return Proposal(
            tuple(choices),
            count_epochs(survey.n_rows, 4.0, of=13_000, power=0.3),
            origin.size(),
            smaller_preset={WHOLE: UPPER}.get(preset, ""),
            budget=FINE_TUNING_BUDGET,
            min_steps=200,
            n_validations=10,
        )


def _task_choices(survey: Survey) -> Iterable[Choice]:
    """What the tags are, swapped spans, and the baseline."""
    settings: TagSettings = survey.settings
    yield Choice("task.kind", "tag", "a tag for each word")
    if settings.scheme != "auto":
        yield Choice("task.scheme", settings.scheme, "how the tags encode spans")
    if settings.intents:
        yield Choice("task.intents", True, "each text also has an intent")
        yield Choice("task.smoothing", 0.1, "label smoothing of intents")
    is_every_word = all(tag.startswith("B-") for row in survey.sample for tag in row[1].split(" "))
    if not _are_characters(survey) and not is_every_word:
        yield Choice("task.swapping", 0.3, "share of spans replaced by another span of the same label")
    yield Choice("task.baseline", True, "also fit a linear CRF, compare with it and mix it into the answer")


def _refuse_tag_ids(files: DataFiles) -> None:
    """Raise DataError if a column holds the numbers of tags instead of the tags."""
    lists = [column for column in files.columns if column.are_lists]
    for numbers in (column for column in lists if column.is_numbers):
        for words in lists:
            if words is not numbers and not words.is_numbers and words.has_as_many_words(numbers):
                raise DataError(
                    _(
                        "{path}: column {tags} numbers the tags for the words of {words}. Write the tags "
                        "themselves, such as B-PER, I-PER and O.",
                        path=files.paths[0],
                        tags=numbers.name,
                        words=words.name,
                    )
                )


def _are_word_labels(tags: Column, columns: Sequence[Column]) -> bool:
    """Whether a column has a label for each word of another one, such as parts of speech."""
    return any(column is not tags and column.has_as_many_words(tags) for column in columns) and not tags.is_numbers


def _character_choices(survey: Survey) -> Iterable[Choice]:
    n_characters = len({character for text in survey.texts for character in text} - {" "})
    yield Choice("tokenizer.kind", "character", "each tag belongs to a character")
    yield Choice("tokenizer.vocab_size", n_characters + N_SPARE_TOKENS, "every character, and bytes for new ones")


def _are_characters(survey: Survey) -> bool:
    """Whether the tagged words are single characters, as in Chinese."""
    n_words = sum(1 + text.count(" ") for text in survey.texts)
    return survey.has_many_characters and sum(map(len, survey.texts)) < 2.5 * n_words


_MIN_TAGGED = 3  # a mention that was tagged less often may have been tagged by mistake
_MIN_LETTERS = 3  # of a mention; shorter ones are often words of their own
_LONGEST = 4  # words of a mention that is searched for


@dataclass
class _TagCounts:
    """What one pass over a set counts."""

    types: "Counter[str]" = field(default_factory=Counter)
    intents: "Counter[str]" = field(default_factory=Counter)
    mentions: "dict[str, Counter[str]]" = field(default_factory=dict)  # the kinds of each mention
    n_rows: int = 0
    n_without: int = 0  # rows without an entity

    @classmethod
    def of(cls, source: Source) -> "_TagCounts":
        counts = cls()
        for row in source.rows():
            words = row[0].split(" ")
            spans = list(iob2_spans(row[1].split(" ")))
            counts.n_rows += 1
            counts.n_without += not spans
            counts.intents.update(row[2:])
            for start, end, label in spans:
                counts.types[label] += 1
                counts.mentions.setdefault(" ".join(words[start:end]), Counter())[_kind_of(label)] += 1
        return counts


class TagDoctor(TaskDoctor):
    """Rows are words, their tags in IOB2 and, if set, an intent."""

    noun = Message("sentences")

    def has_line_per_row(self, files: Sequence[str], settings: TagSettings) -> bool:
        """CoNLL columns have one word per line."""
        return len(files) > 1 or is_table(Path(files[0]))

    def check_rows(self, sets: Sequence[Source], settings: TagSettings) -> Iterator[Finding]:
        """Check types and intents, and whether the same words have the same tags."""
        train, *held_out = sets
        counts = {source.name: _TagCounts.of(source) for source in sets}
        own, others = counts[train.name], {source.name: counts[source.name] for source in held_out}
        yield from check_labels(
            own.types, {name: count.types for name, count in others.items()}, ENTITY_TYPE, per_row=False
        )
        if settings.intents:
            intents = {name: count.intents for name, count in others.items()}
            yield from check_labels(own.intents, intents, INTENT, per_row=True)
            yield check_contradictions(train, 2, INTENT)
        yield check_types_of_mentions(train, own.mentions)
        yield check_untagged(train, own.mentions)
        yield _check_empty(train, own)

    def check_outputs(self, check: str, samples: Sequence[Sample]) -> Finding:
        """Check that the model finds entities at all."""
        n_expected, n_found = (sum(bool(sample[side].strip()) for sample in samples) for side in (2, 1))
        message = _(
            "{n_found} of {n_samples} sentences got an entity; {n_expected} have one.",
            n_found=n_found,
            n_samples=len(samples),
            n_expected=n_expected,
        )
        if n_found or n_expected < 4:
            return Finding(check, "good", message)
        fix = _("The model tags nothing: train longer, or raise train.learning_rate; run doctor on the recipe.")
        return Finding(check, "bad", message, (), fix)


def _kind_of(label: str) -> str:
    """Return the part of a type that does not depend on the context: "city" of "from.city" and "to.city"."""
    return label.rpartition(".")[2]


def check_types_of_mentions(source: Source, mentions: "dict[str, Counter[str]]") -> Finding:
    """Count mentions whose type is not the one that the same words usually have."""
    total = sum(sum(types.values()) for types in mentions.values())
    minority = {words: sum(types.values()) - max(types.values()) for words, types in mentions.items() if len(types) > 1}
    count = sum(minority.values())
    verdict = verdict_of(count, total, warn=0.1, fail=0.4)
    message = _(
        "{name}: {counted} entities have another type than the same words usually have.",
        name=source.name,
        counted=share(count, total),
    )
    if verdict == "good":
        return Finding("inconsistent types", verdict, message)
    worst = sorted(minority, key=lambda words: -minority[words])[:MAX_EXAMPLES]
    examples = tuple(
        f"{excerpt(words)}: {', '.join(f'{label} {n:,}' for label, n in mentions[words].most_common(3))}"
        for words in worst
    )
    fix = _("Check the examples: if the words mean the same, tag them alike.")
    return Finding("inconsistent types", verdict, message, examples, fix)


def check_untagged(source: Source, mentions: "dict[str, Counter[str]]") -> Finding:
    """Count places where words that are mostly tagged have no tag."""
    tagged = {words: sum(types.values()) for words, types in mentions.items()}
    known = {words for words, n in tagged.items() if n >= _MIN_TAGGED and sum(map(str.isalpha, words)) >= _MIN_LETTERS}
    missing: Counter[str] = Counter()
    where: dict[str, int] = {}
    for index, row in enumerate(source.rows()):
        for words in _outside(row[0].split(" "), row[1].split(" ")):
            if words in known:
                missing[words] += 1
                where.setdefault(words, index)
    forgotten = {words: n for words, n in missing.items() if 2 * n <= tagged[words]}
    count, total = sum(forgotten.values()), sum(tagged.values())
    verdict = verdict_of(count, total + count, warn=0.03, fail=0.3)
    message = _(
        "{name}: {count:,} times, words that are mostly tagged have no tag ({total:,} entities are tagged).",
        name=source.name,
        count=count,
        total=total,
    )
    if verdict == "good":
        return Finding("missing tags", verdict, message)
    worst = sorted(forgotten, key=lambda words: -forgotten[words])[:MAX_EXAMPLES]
    examples = tuple(
        f"{source.location(where[words])}: {excerpt(words)} "
        + _("(tagged {tagged:,}, not tagged {missing:,})", tagged=tagged[words], missing=missing[words])
        for words in worst
    )
    fix = _("Tag these places too, or remove the sentences.")
    return Finding("missing tags", verdict, message, examples, fix)


def _outside(words: Sequence[str], tags: Sequence[str]) -> Iterator[str]:
    """Yield the sequences of up to four words that have no tag."""
    for start in range(len(words)):
        for end in range(start + 1, min(start + _LONGEST, len(words)) + 1):
            if tags[end - 1] != "O":
                break
            yield " ".join(words[start:end])


def _check_empty(source: Source, counts: _TagCounts) -> Finding:
    verdict = verdict_of(counts.n_without, counts.n_rows, warn=0.8, fail=0.999)
    message = _(
        "{name}: {counted} sentences have no entity.", name=source.name, counted=share(counts.n_without, counts.n_rows)
    )
    fix = _("Check that the tags are in the right column; if they are, leave out some of these sentences.")
    return Finding("no entities", verdict, message, (), "" if verdict == "good" else fix)


# "Table" occurs as a thing and as a location.
SENTENCES: dict[str, tuple[str, ...]] = {
    "en": (
        "Two days ago Anna's sister bought a red scarf at the market.",
        "The cup is on the table.",
        "Where did the man buy the table?",
        "Please give the old teacher a cup of tea.",
    ),
    "zh": (
        "两天前安娜的妹妹在市场上买了一条红色的围巾。",
        "那个杯子在桌子上。",
        "那个男人是在哪里买那张桌子的？",
        "请给我那杯茶。",
    ),
    "de": (
        "Vor zwei Tagen hat Annas Schwester auf dem Markt einen roten Schal gekauft.",
        "Die Tasse steht auf dem Tisch.",
        "Wo hat der Mann den Tisch gekauft?",
        "Bitte gib dem alten Lehrer eine Tasse Tee.",
    ),
}


def show_entities(predict: Predict, language: str) -> Demo:
    """Return sentences with their entities and intents."""
    lines = [("", prediction.line()) for prediction in predict(SENTENCES[language])]
    return Demo(Message("Who, what, where, when"), lines)


QUICKSTART = Quickstart(
    name="tag",
    title=Message("tag entities and intents"),
    steps=500,
    recipe={
        "task": {"kind": "tag", "intents": True, "baseline": False},
        "tokenizer": {"kind": "bpe", "vocab_size": 1200},
        "model": {"n_encoder_layers": 2},
        "train": {"batch_tokens": 1500, "learning_rate": 3e-3, "warmup": 100, "validate_every": 100},
    },
    examples={language: texts[1:3] for language, texts in SENTENCES.items()},
    own_data=Message("YOUR.conll   (a word and its tag per line)"),
    demo=show_entities,
)
