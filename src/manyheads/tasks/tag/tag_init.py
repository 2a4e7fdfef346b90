"""The tag task's part of `init`: words with tags such as B-PER, in columns, lists or parallel files."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.tasks.columns import Column
from manyheads.tasks.data_files import DataFiles, FolderListing
from manyheads.tasks.encoder_choices import (
    FEW_ROWS,
    N_SPARE_TOKENS,
    count_epochs,
    dropout_for,
    encoder_choices,
    encoder_proposal,
    text_tokens,
    token_choices,
    training_choices,
)
from manyheads.tasks.proposal import Choice, LabelCounts, Proposal, Survey, count_labels
from manyheads.tasks.tag.settings import TagSettings
from manyheads.tasks.task_init import Request, TaskGuess, TaskInit, column_names, requested_column
from manyheads.text.reading.readers import Row
from manyheads.text.reading.tag_schemes import tags_to_spans
from manyheads.text.reading.tagged_readers import TAGGED_FILES

_LENGTHS = (128, 256, 512)  # tokens


class TagInit(TaskInit):
    """Recognizes words with tags, and intents beside them."""

    kind = "tag"
    cli_name = "tag"
    order = 10
    noun = "sentence"
    noun_zh = "个句子"
    columns = ("text", "tags", "label")
    own_columns = frozenset({"tags"})
    is_labeled = True
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
        tags = requested or next((one for one in columns if one.are_tags), None)
        if tags is None or not (tags.are_tags or _are_word_labels(tags, columns)):
            _refuse_tag_ids(files)
            if not self.is_requested(request):
                return None
            raise DataError(
                _(
                    "{path}: no column holds tags such as B-PER, I-PER and O (columns: {column_names}). Name it "
                    "with --tags-column.",
                    path=path,
                    column_names=column_names(columns),
                )
            )
        words = requested_column(files, request, "text") or next(
            (one for one in columns if one is not tags and one.has_as_many_words(tags)), None
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
        reason = _("column {name} holds tags for the words of {name_2}", name=tags.name, name_2=words.name)
        if label:
            reason += _(" and {name} an intent for each text", name=label.name)
        return TaskGuess(reason, chosen, {"intents": label is not None})

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
        settings: TagSettings = survey.settings
        by_character = _are_characters(survey)
        n_tokens = survey.length_quantile(0.999) / 2 if by_character else text_tokens(survey, 0.999)
        length = next((length for length in _LENGTHS if n_tokens < 0.9 * length), 1024)
        dropout = dropout_for(survey)
        choices = [*(_character_choices(survey) if by_character else token_choices(survey))]
        choices.append(Choice("task.kind", "tag", "a tag for each word"))
        if settings.scheme != "auto":
            choices.append(Choice("task.scheme", settings.scheme, "how the tags encode spans"))
        if settings.intents:
            choices.append(Choice("task.intents", True, "each text also has an intent"))
            choices.append(Choice("task.smoothing", 0.1, "label smoothing of intents"))
        is_every_word = all(tag.startswith("B-") for row in survey.sample for tag in row[1].split(" "))
        if not by_character and not is_every_word:
            choices.append(Choice("task.swapping", 0.3, "share of spans replaced by another span of the same label"))
        choices += [
            Choice("task.baseline", True, "also fit a linear CRF, compare with it and mix it into the answer"),
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


def _refuse_tag_ids(files: DataFiles) -> None:
    """Raise DataError if a column holds the numbers of tags instead of the tags."""
    lists = [column for column in files.columns if column.are_lists]
    for numbers in (column for column in lists if column.is_numbers):
        for words in lists:
            if words is not numbers and not words.is_numbers and words.has_as_many_words(numbers):
                raise DataError(
                    _(
                        "{paths}: column {name} numbers the tags for the words of {name_2}. Write the tags "
                        "themselves, such as B-PER, I-PER and O.",
                        paths=files.paths[0],
                        name=numbers.name,
                        name_2=words.name,
                    )
                )


def _are_word_labels(tags: Column, columns: Sequence[Column]) -> bool:
    """Whether a column has a label for each word of another one, such as parts of speech."""
    return any(one is not tags and one.has_as_many_words(tags) for one in columns) and not tags.is_numbers


def _character_choices(survey: Survey) -> Iterable[Choice]:
    n_characters = len({character for text in survey.texts for character in text} - {" "})
    yield Choice("tokenizer.kind", "character", "each tag belongs to a character")
    yield Choice("tokenizer.vocab_size", n_characters + N_SPARE_TOKENS, "every character, and bytes for new ones")


def _are_characters(survey: Survey) -> bool:
    """Whether the tagged words are single characters, as in Chinese."""
    n_words = sum(1 + text.count(" ") for text in survey.texts)
    return survey.has_many_characters and sum(map(len, survey.texts)) < 2.5 * n_words
