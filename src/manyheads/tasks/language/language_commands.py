"""The language task's parts of `init`, `doctor` and `quickstart`.

`init` looks for plain text or long texts in a table, and proposes a decoder. `doctor` checks continuations that run in
a circle. The quickstart continues stories, and checks that they are consistent.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from manyheads import corpora
from manyheads.corpora.story_parser import first_sentence
from manyheads.errors import DataError
from manyheads.messages import Message, _
from manyheads.tasks.columns import Column, named_pair
from manyheads.tasks.data_files import PLAIN_TEXT, DataFiles
from manyheads.tasks.document_task import (
    LITTLE_TEXT,
    MUCH_TEXT,
    DocumentDoctor,
    DocumentInit,
    character_choices,
    characters_per_token,
    count_document_epochs,
    document_budget,
    document_choices,
    subword_choices,
)
from manyheads.tasks.findings import MAX_EXAMPLES, Finding, excerpt, verdict_of
from manyheads.tasks.proposal import (
    Choice,
    Demo,
    Predict,
    Proposal,
    Quickstart,
    Survey,
    layers_of_width,
    stable_choices,
    training_choices,
)
from manyheads.tasks.task_doctor import Sample, is_repetitive
from manyheads.tasks.task_init import Request, TaskGuess
from manyheads.text.reading.files import format_suffix
from manyheads.text.suggestions import shortened

_MIN_ROWS = 10  # of a table, to recognize a column of texts
_LONG_TEXT = 40.0  # characters, on average
_MUCH_LONGER = 3  # times
_MIN_LINES = 10  # of plain text, to recognize a table
_NEARLY_ALL = 0.95
_STRIDE = 64
_SHORT, _LONG = 128, 256  # tokens of context


@dataclass(frozen=True)
class _Decoder:
    """The size of a language model and its training; `n_epochs` is for a million tokens."""

    width: int
    layers: int
    heads: int
    feed_forward_width: int
    activation: str
    dropout: float
    learning_rate: float
    n_epochs: float


# An alphabet is small and the order of letters is all there is to learn: deep and narrow. Other vocabularies are large.
_LETTERS = _Decoder(160, 6, 5, 432, "swiglu", 0.1, 3e-3, 22.0)
_MANY_CHARACTERS = _Decoder(192, 4, 6, 768, "gelu", 0.15, 2e-3, 11.0)
_WORDS = _Decoder(256, 4, 8, 1024, "gelu", 0.2, 2e-3, 11.0)
_MANY_WORDS = _Decoder(384, 6, 8, 1536, "gelu", 0.1, 1e-3, 11.0)


class LanguageInit(DocumentInit):
    """Recognizes plain text, and tables whose main column holds long texts."""

    kind = "language"
    cli_name = "language"
    order = 30

    def recognize(self, files: DataFiles, request: Request) -> TaskGuess | None:
        """Files of plain text, or a column of long texts."""
        if files.is_table:
            return self._recognize_table(files, request)
        if files.are_documents:
            return TaskGuess(_("they are {n_paths} files of plain text", n_paths=len(files.paths)))
        if len(files.paths) == 1 and format_suffix(files.paths[0]) in PLAIN_TEXT:
            _refuse_table_as_text(files)
            return TaskGuess(_("it is plain text"))
        return None

    def _recognize_table(self, files: DataFiles, request: Request) -> TaskGuess | None:
        if self.is_requested(request) or "text" in request.columns:
            return self.requested_table(files, request)
        columns = files.columns
        if named_pair(columns):
            return None
        texts = sorted((column for column in columns if column.are_texts), key=lambda column: -column.mean_length)
        if not texts or len(texts[0].values) < _MIN_ROWS:
            return None
        text, others = texts[0], [column for column in columns if column is not texts[0]]
        other_length = max((column.mean_length for column in others), default=0.0)
        is_alone = all(column.is_numbers or column.is_metadata for column in others)
        is_long = text.mean_length >= _LONG_TEXT and text.mean_length >= _MUCH_LONGER * other_length
        if not (is_alone and (is_long or text.is_called_text)) and not (len(columns) > 2 and is_long):
            return None
        return TaskGuess(_("column {name} holds long texts", name=text.name), {"text": text.name})

    def propose(self, survey: Survey, preset: str = "") -> Proposal:
        """A decoder over characters for little text, over subwords for more."""
        size, decoder = survey.n_characters, _decoder(survey)
        is_little = size < LITTLE_TEXT
        context = _SHORT if is_little and survey.length_quantile(0.99) < 0.9 * _SHORT else _LONG
        choices = [
            *(character_choices(survey) if is_little else subword_choices(survey)),
            Choice("task.kind", "language", "predict the next token"),
            *document_choices(survey),
            *_stride_choices(survey),
            Choice("model.width", decoder.width, f"enough for {survey.size}"),
            Choice("model.n_decoder_layers", decoder.layers),
            Choice("model.n_heads", decoder.heads),
            Choice("model.feed_forward_width", decoder.feed_forward_width),
            Choice("model.activation", decoder.activation),
            *stable_choices(survey, decoder.dropout),
            Choice("model.max_length", context, "the context: tokens the model sees"),
            *training_choices(
                batch_tokens=2048,
                learning_rate=decoder.learning_rate,
                validation_reason="steps between validations, on part of the valid text",
                weight_decay=0.05,
            ),
            Choice("decode.method", "sample", "draw the next token by its probability"),
            Choice("decode.temperature", 0.8, "below 1: likely tokens are drawn more often"),
            Choice("decode.top_p", 0.9, "unlikely tokens are never drawn"),
            Choice("decode.max_new_tokens", 200, "tokens to generate at most"),
        ]
        n_tokens = float(size) if is_little else size / characters_per_token(survey)
        return Proposal(
            tuple(choices),
            count_document_epochs(n_tokens, decoder.n_epochs),
            layers_of_width(decoder.layers, decoder.width),
            budget=document_budget(size),
        )


def _decoder(survey: Survey) -> _Decoder:
    if survey.n_characters < LITTLE_TEXT:
        return _MANY_CHARACTERS if survey.has_many_characters else _LETTERS
    return _WORDS if survey.n_characters < MUCH_TEXT else _MANY_WORDS


def _stride_choices(survey: Survey) -> Iterable[Choice]:
    """A shorter stride makes scoring slower, which only a short text is worth."""
    if survey.n_scored_characters < LITTLE_TEXT / 20:
        yield Choice("task.stride", _STRIDE, "scoring: tokens by which the window moves; smaller gives more context")


def _refuse_table_as_text(files: DataFiles) -> None:
    """Raise DataError if plain text is a table, or labels in fastText's format."""
    path, lines = files.paths[0], [line for line in files.first_lines if line.strip()]
    if len(lines) < _MIN_LINES:
        return
    if sum(line.startswith("__label__") for line in lines) >= _NEARLY_ALL * len(lines):
        raise DataError(
            _(
                "{path}: its lines begin with labels as fastText writes them. Convert it to a .tsv, label TAB "
                "text: sed -E 's/^__label__([^ ]+) /\\1\\t/' FILE > NEW_FILE.tsv.",
                path=path,
            )
        )
    for separator, name, suffix in (("\t", _("a tab"), ".tsv"), (";", _("a semicolon"), ".csv")):
        rows = [line.split(separator) for line in lines]
        n_columns = len(rows[0])
        if n_columns < 2 or any(len(row) != n_columns for row in rows):
            continue
        if separator == "\t" or any(Column("", column).repeats for column in zip(*rows, strict=True)):
            raise DataError(
                _(
                    "{path}: every line has {n_columns} columns, with {separator} between them: a table. Rename it to "
                    "end in {suffix}; or, if it is plain text, give --task language.",
                    path=path,
                    n_columns=n_columns,
                    separator=name,
                    suffix=suffix,
                )
            )


class LanguageDoctor(DocumentDoctor):
    """A model continues its documents."""

    def check_outputs(self, check: str, samples: Sequence[Sample]) -> Finding:
        """Check for continuations that are empty or repeat themselves, as greedy decoding sometimes does."""
        repetitive = [text for _, text, _ in samples if is_repetitive(text)]
        n_empty = sum(not text.strip() for _, text, _ in samples)
        verdict = verdict_of(max(n_empty, len(repetitive)), len(samples), warn=0.5)
        message = _(
            "of {n_samples} continuations, {n_repetitive} are repetitive, {n_empty} are empty.",
            n_samples=len(samples),
            n_repetitive=len(repetitive),
            n_empty=n_empty,
        )
        if verdict == "good":
            return Finding(check, verdict, message)
        fix = _("Train longer, or on more text; sampling (decode.method) repeats itself less than greedy decoding.")
        return Finding(check, verdict, message, tuple(excerpt(text) for text in repetitive[:MAX_EXAMPLES]), fix)


_N_STORIES, _N_SHOWN = 100, 3
_LONGEST = 400  # characters shown of a story


def show_stories(predict: Predict, language: str) -> Demo:
    """Return stories that begin with unseen sentences, and how many of them are consistent."""
    rows = islice(corpora.rows("generate", language, "test", _N_STORIES, 2), _N_STORIES)
    beginnings = [first_sentence(text) for (text,) in rows]
    stories = [prediction.line() for prediction in predict(beginnings)]
    lines = [
        (beginning, shortened(story[len(beginning) :], _LONGEST))
        for beginning, story in list(zip(beginnings, stories, strict=True))[:_N_SHOWN]
    ]
    if language != "de":  # the story parser knows English and Chinese
        lines += _consistency(stories)
    return Demo(Message("Stories that begin with unseen sentences"), lines)


def _consistency(stories: Sequence[str]) -> list[tuple[str, str]]:
    faults = [corpora.story_faults(story) for story in stories]
    n_consistent = sum(not found for found in faults)
    summary = _(
        "{n_consistent} of {n_stories} such stories are consistent: people, pronouns, things, locations and "
        "times agree.",
        n_consistent=n_consistent,
        n_stories=len(stories),
    )
    lines = [("", summary)]
    for story, found in zip(stories, faults, strict=True):
        if found:
            lines.append(("", _("An inconsistent one: {story}", story=shortened(story, _LONGEST))))
            lines.append(("", f"  ({shortened(found[0])})"))
            break
    return lines


QUICKSTART = Quickstart(
    name="generate",
    title=Message("generate stories"),
    steps=800,
    recipe={
        "task": {"kind": "language"},
        "tokenizer": {"kind": "bpe", "vocab_size": 1200},
        "model": {"n_decoder_layers": 2},
        "train": {"batch_tokens": 3000, "learning_rate": 3e-3, "warmup": 100, "validate_every": 200},
        "decode": {"method": "sample", "top_p": 0.9, "max_new_tokens": 150},
    },
    examples={
        "en": ("Last Sunday Anna lost her key in the park.",),
        "zh": ("上个星期天安娜在公园里弄丢了她的钥匙。",),
        "de": ("Letzten Sonntag hat Anna ihren Schlüssel im Park verloren.",),
    },
    own_data=Message("YOUR-FOLDER   (of .txt files)"),
    takes_prompt=True,
    demo=show_stories,
)
