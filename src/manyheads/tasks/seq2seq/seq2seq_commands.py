"""The seq2seq task's parts of `init`, `doctor` and `quickstart`.

`init` looks for pairs of texts in one table or in two parallel files, and for their languages. `doctor` checks
translations, summaries that do not summarize, and replies that say nothing.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from manyheads.data import CleanSettings
from manyheads.decode import DecodeSettings, EngineSelector
from manyheads.errors import DataError
from manyheads.messages import Message, _
from manyheads.tasks.columns import named_pair
from manyheads.tasks.data_files import DataFiles, FolderListing, are_plain_text
from manyheads.tasks.findings import MAX_EXAMPLES, Finding, excerpt, share, verdict_of
from manyheads.tasks.proposal import (
    HOUR,
    Choice,
    LabelCounts,
    Proposal,
    Quickstart,
    Survey,
    schedule_choices,
)
from manyheads.tasks.seq2seq.settings import Seq2SeqSettings
from manyheads.tasks.seq2seq.translation_search import n_tuning_translations
from manyheads.tasks.task_doctor import Sample, Source, TaskDoctor, check_outputs
from manyheads.tasks.task_init import N_VALIDATED, Languages, Request, TaskGuess, TaskInit, Timer, listed
from manyheads.text.language_codes import (
    base_of,
    direction_of_name,
    is_language,
    language_of_suffix,
    language_of_text,
    languages_of_names,
)
from manyheads.text.markup.copyable_spans import count_copied
from manyheads.text.reading.formats import format_of, is_table, table_suffixes
from manyheads.text.reading.readers import Row, columns_of
from manyheads.text.suggestions import shortened

if TYPE_CHECKING:
    from manyheads.tasks.task import Task

_COLUMN_PAIRS = (("source", "target"), ("src", "tgt"), ("src", "trg"))
_FEW_TARGETS = 50  # this few different targets are labels, not translations
_MIN_PAIRS_FOR_LABELS = 1000  # with fewer pairs, few targets do not mean that they are labels
_TRIAL_SENTENCES, _TRIAL_SENTENCES_OF_LARGE = 200, 24  # translated to measure the speed

_FEW_PAIRS = 5_000
_SOME_PAIRS = 200_000  # from here on a wider model pays
_MANY_PAIRS = 2_000_000
_MIN_COPYING = 0.02  # from this share of pairs with code or markup on, placeholders pay
_N_PLACEHOLDERS = 16  # of 46,000 paragraphs of technical documentation, 2 in 10,000 have more such spans
_SIZES = {
    "tiny": "4 + 4 layers of width 128",
    "small": "4 + 4 layers of width 256",
    "base": "6 + 6 layers of width 512",
}
_SMALLER = {"base": "small", "small": "tiny"}
_LEARNING_RATES = {"tiny": 3e-3, "small": 2e-3, "base": 1e-3}
_BATCH_TOKENS = {"tiny": 1200, "small": 3000, "base": 8000}
# (below this many pairs, vocabulary size, vocabulary size of a script with many characters)
_VOCAB_SIZES = (
    (1_000, 1000, 1500),
    (_FEW_PAIRS, 2000, 3000),
    (15_000, 4000, 3000),
    (60_000, 6000, 4000),
    (500_000, 8000, 10_000),
    (_MANY_PAIRS, 16_000, 16_000),
)


class Seq2SeqInit(TaskInit):
    """Recognizes pairs of texts, after all other tasks: any two columns of text may be a pair."""

    kind = "seq2seq"
    cli_name = "translate"
    order = 90
    noun = "pair"
    advice = "Give text and its translation."
    columns = ("source", "target")
    own_columns = frozenset({"source", "target"})
    takes_columns_of_lines = True  # reading reports that parallel files have no columns

    def is_implied_by(self, request: Request) -> bool:
        """Languages imply translation, too."""
        return super().is_implied_by(request) or any(request.direction)

    def files_in(self, listing: FolderListing, request: Request) -> Sequence[Path] | None:
        """One file of pairs, or two parallel files, if the folder has several training files."""
        training = listing.training_files
        if len(training) < 2 or are_plain_text(training):
            return None
        return training_files(listing, request.direction)

    def recognize_names(self, files: DataFiles, request: Request) -> TaskGuess | None:
        """A table whose columns are called source and target, or after languages."""
        if not files.is_table or request.kind or request.columns:
            return None
        table = format_of(files.paths[0])
        if table is not None and table.has_languages:
            return TaskGuess(_("its texts are in several languages"))
        pair = pick_columns(files.header, request.direction)
        return TaskGuess(_columns_reason(pair)) if pair else None

    def recognize(self, files: DataFiles, request: Request) -> TaskGuess | None:
        """Any two parallel files; a table whose columns are named for a pair, or a .tsv with two columns."""
        if not files.is_table:
            n_files = len(files.paths)
            reason = _("they are {n_files} parallel files of text", n_files=n_files)
            return None if n_files == 1 else TaskGuess(reason)
        if self.is_requested(request) and (request.columns or any(request.direction)):
            return TaskGuess(request.reason, request.columns)
        pair = named_pair(files.columns)
        if pair:
            # The length of an answer or a summary does not depend on the length of its source.
            clean = CleanSettings() if pair.purpose == "translation" else CleanSettings(max_ratio=0.0)
            reason = _columns_reason([pair.source, pair.target])
            chosen = {"source": pair.source, "target": pair.target}
            return TaskGuess(reason, chosen, {"purpose": pair.purpose}, clean)
        if len(files.columns) == 2 and _is_tab_separated(files.paths[0]):
            return TaskGuess(_("it has two columns of text"))
        return TaskGuess(request.reason) if self.is_requested(request) else None  # `complete` finds the columns

    def complete(self, guess: TaskGuess, sets: Mapping[str, Sequence[Path]], request: Request) -> TaskGuess:
        """Check the number and the direction of the files; find languages and columns by names."""
        training = sets["train"]
        if len(training) > 2:
            raise DataError(
                _(
                    "{n_files} files are given. Give two parallel files, or one table of pairs ({suffixes}).",
                    n_files=len(training),
                    suffixes=table_suffixes(),
                )
            )
        for files in sets.values():
            if len(files) == 2 and files[0].resolve() == files[1].resolve():
                raise DataError(_("{file} is given twice. Give the text and its translation.", file=files[0]))
        languages = languages_of_names(training)
        direction = request.direction if all(request.direction) else languages
        for files in sets.values():
            _refuse_exchanged(files, direction)
        if len(training) > 1:
            return replace(guess, languages=languages)
        if guess.columns:
            columns = (guess.columns.get("source", ""), guess.columns.get("target", ""))
        else:
            columns = _columns_of(training[0], request.direction)
        if all(map(is_language, columns)):
            languages = columns
        if guess.columns:
            return replace(guess, languages=languages)
        chosen = dict(zip(self.columns, columns, strict=True)) if any(columns) else {}
        return replace(guess, languages=languages, columns=chosen)

    def check_rows(self, rows: Sequence[Row], where: str) -> None:
        """Refuse targets that are labels."""
        targets = {target for _source, target in rows}
        if len(targets) <= _FEW_TARGETS and len(rows) >= _MIN_PAIRS_FOR_LABELS:
            examples = shortened(", ".join(sorted(targets)[:3]), 60)
            raise DataError(
                _(
                    "{where}: the targets have only {n_targets} different values ({examples}): labels rather than "
                    "translations. Name the column of the translations with --target-column.",
                    where=where,
                    n_targets=len(targets),
                    examples=examples,
                )
            )

    def check_clean_rows(self, rows: Sequence[Row], counts: LabelCounts, settings: Any, where: str) -> None:
        """Refuse targets that are copies of their sources."""
        n_copies = sum(source == target for source, target in rows)
        if n_copies > len(rows) / 2:
            raise DataError(
                _(
                    "{where}: the target is the same as the source in {n_copies:,} of {n_pairs:,} pairs. Give the text "
                    "and its translation.",
                    where=where,
                    n_copies=n_copies,
                    n_pairs=len(rows),
                )
            )

    def languages(self, rows: Sequence[Row], named: Languages, requested: Languages, files: Sequence[str]) -> Languages:
        """The requested languages, else those of the names, else those of the scripts; a wrong direction is refused."""
        by_script = [language_of_text(" ".join(pair[side] for pair in rows[:2000])) for side in (0, 1)]
        if _is_exchanged(by_script, requested):
            side, language = (_("source"), by_script[0]) if by_script[0] else (_("target"), by_script[1])
            columns = _("Exchange --source-column and --target-column.")
            raise DataError(
                _(
                    "{files}: the {side} is written in {language}, but the requested direction is {direction}. "
                    "{remedy}",
                    files=" + ".join(files),
                    side=side,
                    language=language,
                    direction=" → ".join(code or "?" for code in requested),
                    remedy=_("Exchange the two files.") if len(files) == 2 else columns,
                )
            )
        if _is_exchanged(by_script, named):
            named = (named[1], named[0])  # en-zh.tsv whose first column is Chinese
        source, target = (requested[side] or named[side] or by_script[side] for side in (0, 1))
        return source, target

    def display_name(self, settings: Seq2SeqSettings) -> str:
        """The purpose, if it is not translation."""
        return self.cli_name if settings.purpose == "translation" else settings.purpose

    def propose(self, survey: Survey, preset: str = "") -> Proposal:
        """A preset that suits the number of pairs."""
        n_pairs = survey.n_rows
        suitable = "tiny" if n_pairs < _SOME_PAIRS else "small" if n_pairs < _MANY_PAIRS else "base"
        preset = preset or suitable
        smaller = f"; {suitable} would suit the text, but is too slow here" if preset != suitable else ""
        characters = "; most are single characters such as 字" if survey.has_many_characters else ""
        choices = [
            *_language_choices(survey),
            Choice("tokenizer.kind", "bpe", "subword tokens, learned from your text"),
            Choice(
                "tokenizer.vocab_size",
                _vocab_size(survey),
                f"small enough for every token to occur often: {survey.size}{characters}",
            ),
        ]
        n_copying = sum(count_copied(source, target) > 0 for source, target in survey.sample)
        if n_copying >= _MIN_COPYING * len(survey.sample):
            share = n_copying / len(survey.sample)
            reason = f"code, markup, URLs and the like are copied through placeholders: {share:.0%} of pairs have some"
            choices.append(Choice("tokenizer.placeholders", _N_PLACEHOLDERS, reason))
        if n_pairs < _FEW_PAIRS:
            reason = "splits words differently each time: more variety from few pairs"
            choices.append(Choice("tokenizer.sampling", 0.1, reason))
        choices += [
            Choice("model.preset", preset, f"{_SIZES[preset]}: enough for {survey.size}{smaller}"),
            Choice("model.norm_placement", "pre", "trains stably at a high learning rate"),
            Choice("model.dropout", _dropout(n_pairs), f"more for less text: {survey.size}"),
            Choice("model.max_length", _max_length(survey), "tokens; longer sentences are left out of training"),
            Choice("task.smoothing", 0.1, "label smoothing: less overconfident, which helps beam search"),
            *_training_choices(n_pairs, preset),
            Choice("decode.beam", 5, "beam size for translation"),
        ]
        return Proposal(
            tuple(choices),
            count_pair_epochs(n_pairs),
            f"preset {preset}, {_SIZES[preset]}",
            preset=preset,
            smaller_preset=_SMALLER.get(preset, ""),
            budget=HOUR if n_pairs < _SOME_PAIRS else 6 * HOUR if n_pairs < _MANY_PAIRS else 24 * HOUR,
            max_warmup=4000 if preset == "base" else 600,
        )

    def step_counts(self, settings: Seq2SeqSettings, n_steps: int) -> tuple[int, ...]:
        """With R-Drop: the steps before it starts, and those with it."""
        if not settings.consistency:
            return (n_steps,)
        n_plain = min(n_steps, settings.consistency_after)
        return n_plain, n_steps - n_plain

    def phases(self, task: "Task") -> tuple["Task", ...]:
        """With R-Drop: the task without it, and with it from the first step on."""
        settings = task.settings
        if not settings.consistency:
            return (task,)
        both = (replace(settings, consistency=0.0), replace(settings, consistency_after=0))
        return tuple(type(task).restore(task.model, task.tokenizer, phase, task.metadata()) for phase in both)

    def scoring_seconds(
        self, task: "Task", survey: Survey, decode: DecodeSettings, timer: Timer
    ) -> tuple[float, float]:
        """Seconds to translate a few sentences, scaled up."""

        def seconds(translator: Any, settings: DecodeSettings, n_sentences: int) -> float:
            n_trial = _TRIAL_SENTENCES if task.model.settings.width <= 128 else _TRIAL_SENTENCES_OF_LARGE
            rows = task.usable(survey.sample)
            sources = [row[0] for row in islice(rows, min(n_sentences, n_trial))]
            if not sources:
                return 0.0
            # An untrained model seldom generates EOS: it is limited to the length of an average source.
            lengths = [len(ids) + 1 for ids in task.tokenizer.encode_batch(sources)]
            limited = replace(settings, max_new_tokens=round(fmean(lengths)), repetition_guard=False, copy_guard=False)
            return timer(lambda: translator.predict(sources, limited)) * n_sentences / len(sources)

        scored: Any = task
        validation = seconds(task, DecodeSettings(method="greedy"), N_VALIDATED)
        n_translated = survey.n_scored + n_tuning_translations(decode)
        return validation, seconds(scored.with_engine(EngineSelector("auto")), decode, n_translated)


# Files, columns and languages.


def _columns_reason(columns: Sequence[str]) -> str:
    return _("it has the columns {columns}", columns=listed(columns))


def pick_columns(columns: Sequence[str], direction: Languages) -> Languages | None:
    """The source and target column, if their names show them: source and target, en and zh, …"""
    by_name = {name.strip().lower(): name for name in columns}
    first, second = (language.lower() for language in direction)
    if first in by_name and second in by_name:
        return by_name[first], by_name[second]
    by_base: dict[str, list[str]] = {}
    for name in columns:
        by_base.setdefault(base_of(name.strip()), []).append(name)
    own = [by_base.get(base_of(language), []) if language else [] for language in direction]
    if len(own[0]) == 1 == len(own[1]) and own[0] != own[1]:  # en-US and fr-FR for en and fr
        return own[0][0], own[1][0]
    for source, target in _COLUMN_PAIRS:
        if source in by_name and target in by_name:
            return by_name[source], by_name[target]
    languages = [name for name in columns if is_language(name.strip()) or is_language(name.strip().lower())]
    if len(languages) == 3:  # "id" is then a row number, not Indonesian
        languages = [name for name in languages if name.strip().lower() != "id"]
    return (languages[0], languages[1]) if len(languages) == 2 else None


def training_files(listing: FolderListing, direction: Languages) -> Sequence[Path]:
    """The one training file of pairs in a folder, or its two parallel files, source first."""
    training = listing.training_files
    tables = [path for path in training if is_table(path)]
    if len(tables) == 1:
        return (tables[0],)
    by_language = {language_of_suffix(path): path for path in training if language_of_suffix(path)}
    if not all(direction):
        # Folders are often named after the direction: multi30k-en-de/raw.
        named = (direction_of_name(part) for part in reversed(listing.folder.resolve().parts))
        direction = next((pair for pair in named if set(pair) <= set(by_language)), direction)
    if set(direction) <= set(by_language):
        return by_language[direction[0]], by_language[direction[1]]
    if len(by_language) == 2 == len(training):
        return tuple(by_language[language] for language in sorted(by_language, key=lambda code: (code != "en", code)))
    names = ", ".join(path.name for path in listing.files[:8])
    raise DataError(
        _(
            "{folder}: it is not clear which files to train on (files: {names}). Name them: one file of pairs, or "
            "two parallel files, source first.",
            folder=listing.folder,
            names=names,
        )
    )


def _columns_of(path: Path, direction: Languages) -> Languages:
    """The source and target column; "" for a .tsv of two columns, whose order shows them."""
    columns = columns_of(path)
    picked = pick_columns(columns, direction)
    if picked is not None:
        return picked
    if _is_tab_separated(path) and len(columns) == 2:
        return "", ""
    if len(columns) == 1:
        raise DataError(
            _("{path} has one column only. Give source and target in two, or give two parallel files.", path=path)
        )
    table = format_of(path)
    if table is not None and table.has_languages:
        raise DataError(
            _(
                "{path}: its languages are {languages}. Choose two with --source-language and --target-language.",
                path=path,
                languages=shortened(", ".join(columns)),
            )
        )
    no_header = table is not None and table.may_lack_header
    hint = _(" If there is no header: --source-column 1 --target-column 2.") if no_header else ""
    raise DataError(
        _(
            "{path}: it is not clear which columns to translate (columns: {columns}). Name them with "
            "--source-column and --target-column.{hint}",
            path=path,
            columns=shortened(", ".join(columns)),
            hint=hint,
        )
    )


def _is_tab_separated(path: Path) -> bool:
    table = format_of(path)
    return table is not None and table.is_tab_separated


def _refuse_exchanged(files: Sequence[Path], direction: Languages) -> None:
    """Raise DataError if the names of two files show the opposite direction."""
    named = languages_of_names(files) if len(files) == 2 else ("", "")
    first, second = map(base_of, named)
    if first != second and (second, first) == (base_of(direction[0]), base_of(direction[1])):
        raise DataError(
            _(
                "{source_file} and {target_file} go from {source} to {target}, but the requested direction is "
                "{direction}. Exchange the two files.",
                source_file=files[0],
                target_file=files[1],
                source=named[0],
                target=named[1],
                direction=" → ".join(direction),
            )
        )


def _is_exchanged(by_script: Sequence[str], claimed: Languages) -> bool:
    """Whether one side is written in the other's language; not decidable if both sides share a script."""
    if by_script[0] == by_script[1]:
        return False
    return any(by_script[side] and by_script[side] == base_of(claimed[1 - side]) for side in (0, 1))


# Choices.


def count_pair_epochs(n_pairs: int) -> float:
    """45 epochs for Multi30k's 29,000 pairs, fewer for more."""
    return min(100.0, max(3.0, 45.0 * (29_000 / n_pairs) ** 0.55))


def _language_choices(survey: Survey) -> Iterable[Choice]:
    settings: Seq2SeqSettings = survey.settings
    if settings.purpose != "translation":
        yield Choice("task.purpose", settings.purpose, "what the target is to the source")
    source, target = survey.languages or ("", "")
    if source:
        yield Choice("task.source_language", source, "the language to translate from")
    if target:
        yield Choice("task.target_language", target, "BLEU splits words by the rules of this language")


def _training_choices(n_pairs: int, preset: str) -> Iterable[Choice]:
    is_few = n_pairs < _FEW_PAIRS
    yield Choice("train.steps", 1)
    batch_tokens = 1000 if is_few else _BATCH_TOKENS[preset]
    yield Choice("train.batch_tokens", batch_tokens, "padded tokens of a batch, on either side")
    if preset == "base":
        yield Choice("train.accumulation_steps", 3, "batches per update: large models train best on 25,000 tokens")
    yield from schedule_choices(
        learning_rate=3e-3 if is_few else _LEARNING_RATES[preset],
        validation_reason="steps between validations, on at most 200 valid sentences",
    )


def _vocab_size(survey: Survey) -> int:
    for limit, vocab_size, with_many_characters in _VOCAB_SIZES:
        if survey.n_rows < limit:
            return with_many_characters if survey.has_many_characters else vocab_size
    return 32_000


def _dropout(n_pairs: int) -> float:
    """Little: in a few hours, a small model underfits rather than overfits (benchmarks/quality.md)."""
    for limit, dropout in ((_FEW_PAIRS, 0.3), (15_000, 0.2), (500_000, 0.15)):
        if n_pairs < limit:
            return dropout
    return 0.1


def _max_length(survey: Survey) -> int:
    """256, 512 or 1024 tokens: enough for all but one sentence in a thousand.

    A token has about three characters; one in a script with many characters.
    """
    lengths = sorted(max(map(len, pair)) for pair in survey.sample)
    longest = lengths[int(0.999 * (len(lengths) - 1))]
    n_tokens = longest if survey.has_many_characters else longest / 3
    return next((length for length in (256, 512) if n_tokens < 0.9 * length), 1024)


class Seq2SeqDoctor(TaskDoctor):
    """Rows are a source and a target."""

    noun = Message("pairs")

    def are_translations(self, settings: Seq2SeqSettings) -> bool:
        """Summaries and replies are in the same language as their source and of any length."""
        return settings.purpose == "translation"

    def check_rows(self, sets: Sequence[Source], settings: Seq2SeqSettings) -> Iterator[Finding]:
        """Check the targets of summaries and dialogues; translations are checked as parallel text."""
        train = sets[0]
        if settings.purpose == "translation":
            return
        yield _check_copies(train)
        yield _check_summaries(train) if settings.purpose == "summary" else _check_replies(train)

    def check_outputs(self, check: str, samples: Sequence[Sample]) -> Finding:
        """Check for outputs that are all the same, copied, repetitive or empty."""
        return check_outputs(check, [sample[0] for sample in samples], [sample[1] for sample in samples])


def _check_copies(source: Source) -> Finding:
    return _check(
        "copied targets",
        source,
        lambda row: row[0].split() == row[1].split() != [],
        _("have a target that is their source."),
        _("Remove them, or the model learns to copy."),
        warn=0.01,
    )


def _check_summaries(source: Source) -> Finding:
    return _check(
        "summaries",
        source,
        lambda row: len(row[1].strip()) > len(row[0].strip()),
        _("have a summary that is longer than its text."),
        _("Check that the columns are not exchanged (data.source_column, data.target_column)."),
        warn=0.05,
    )


def _check_replies(source: Source) -> Finding:
    replies = Counter(_normalized(row[1]) for row in source.rows())
    common, count = replies.most_common(1)[0] if replies else ("", 0)
    return _check(
        "replies",
        source,
        lambda row: count > 1 and _normalized(row[1]) == common,
        _("have the most common reply, “{excerpt}”.", excerpt=excerpt(common)),
        _("Keep only some of them, or the model gives this reply to everything."),
        warn=0.1,
    )


def _normalized(text: str) -> str:
    return " ".join(text.casefold().split())


def _check(
    check: str, source: Source, is_affected: Callable[[Row], bool], what: str, fix: str, *, warn: float
) -> Finding:
    """Count the pairs that are affected, and show the first."""
    count = total = 0
    examples: list[str] = []
    for index, row in enumerate(source.rows()):
        total += 1
        if is_affected(row):
            count += 1
            if len(examples) < MAX_EXAMPLES:
                examples.append(f"{source.location(index)}: {excerpt(row[0])} → {excerpt(row[1])}")
    verdict = verdict_of(count, total, warn=warn, fail=0.5)
    counted = share(count, total)
    message = _("{name}: {counted} pairs {what}", name=source.name, counted=counted, what=what)
    return (
        Finding(check, verdict, message)
        if verdict == "good"
        else Finding(check, verdict, message, tuple(examples), fix)
    )


QUICKSTART = Quickstart(
    name="translate",
    title=Message("translate"),
    n_languages=2,
    steps=1000,
    recipe={
        "data": {"builtin_rows": 100_000},
        # Large enough that most words written in letters are one token.
        "tokenizer": {"kind": "bpe", "vocab_size": 3000, "chinese_characters": "split"},
        "model": {"n_encoder_layers": 4, "n_decoder_layers": 2, "positions": "rotary"},
        "train": {"batch_tokens": 1500, "learning_rate": 4e-3, "warmup": 150, "validate_every": 100},
    },
    examples={
        "en": ("Two cats are sleeping.", "The teacher did not buy the red book.", "Who is reading the book?"),
        "zh": ("两只猫正在睡觉。", "那位教师没有买那本红色的书。", "谁正在读那本书？"),
        "de": ("Zwei Katzen schlafen.", "Der Lehrer hat das rote Buch nicht gekauft.", "Wer liest das Buch?"),
    },
    own_data=Message("YOUR.en YOUR.zh"),
)
