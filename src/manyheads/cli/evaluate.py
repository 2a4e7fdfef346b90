"""`manyheads evaluate`: score a bundle, alone or against another system."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from manyheads.cli.options import (
    BASELINE_ONLY,
    THRESHOLD,
    check_inputs,
    column_option,
    decode_changes,
    decode_options,
    with_decode_changes,
    with_threshold,
)
from manyheads.cli.rendering.output import open_output, quoted
from manyheads.messages import _, _n
from manyheads.text.reading.formats import table_suffixes

if TYPE_CHECKING:
    from manyheads.bundle import Bundle
    from manyheads.metrics import Answers, Card, Change, Difference, ThresholdChoice

Rows = list[tuple[str, ...]]
Result = TypeVar("Result")


@click.command(
    short_help=_("Score a model with confidence intervals."),
    help=_(
        """Run a model on a test set and print its scorecard.

        DATA is one or two files of the kind the model was trained on, plain or compressed (.gz, .zst): two parallel
        files for a translation model, or one {suffixes}. Without DATA, the test sets of the
        bundle's recipe are used. The 95 % confidence interval is [in brackets], with the number of texts n beside the
        name of the set. The signature of a score names every choice behind it.

        --precision chooses the threshold above which the answers of a classifier or the spans of a tagger are as often
        correct as you want. Choose it on validation rows, check it on others with --threshold, and give it to predict.

        \b
        Examples:
          manyheads evaluate runs/quickstart/bundle
          manyheads evaluate runs/quickstart/bundle --beam 8 --length-penalty 1.0
          manyheads evaluate runs/reviews/bundle valid.csv --precision 0.95
          manyheads evaluate runs/mail/bundle test.en test.de --against other.de
          manyheads evaluate runs/multi30k/bundle test.tok.en test.tok.de --tokenized
        """,
        suffixes=table_suffixes(),
    ),
)
@click.argument("bundle", type=click.Path(path_type=Path))
@click.argument("data", nargs=-1, type=click.Path(path_type=Path))
@click.option("--source-column", help=_("Column of the source text."))
@click.option("--target-column", help=_("Column of the reference."))
@click.option("--text-column", help=_("Column of the text, for models that read a single text."))
@click.option("--label-column", help=_("Column of the label."))
@click.option("--tags-column", help=_("Column of the tags."))
@click.option(
    "--test-set",
    help=_("Test set of the bundle's recipe to use. [default: all]"),
)
@click.option(
    "--against",
    type=click.Path(path_type=Path),
    help=_("Output of another system, one line per sentence: test whether the difference is significant."),
)
@click.option(
    "--against-bundle",
    type=click.Path(path_type=Path),
    help=_("Another bundle to compare with on the same rows: is the difference significant?"),
)
@click.option(
    "--tokenized",
    is_flag=True,
    help=_(
        "Add BLEU of lowercased text without further tokenization: the protocol of papers on pretokenized "
        "data. Use it only with such data and to compare with such papers: it is not comparable with the "
        "default BLEU (the same output has scored 37.04 by one and 32.3 by the other)."
    ),
)
@click.option(
    "--examples",
    "n_examples",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help=_("Number of worst and of random examples."),
)
@decode_options
@THRESHOLD
@BASELINE_ONLY
@click.option(
    "--precision",
    type=click.FloatRange(min=0, max=1, min_open=True),
    help=_("Choose the smallest threshold at which this share of the answers is correct, such as 0.95."),
)
@click.option(
    "--out-of-scope",
    "negatives",
    type=click.Path(path_type=Path),
    help=_("File of texts that belong to no label, one per line: score how well a classifier tells them."),
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help=_(
        "Write the translations to this file, for other tools to score; with --json and a model that does not "
        "translate, the JSON."
    ),
)
@click.option(
    "--confusion",
    type=click.Path(path_type=Path),
    help=_("Write the confusion matrix of labels to this file (.svg)."),
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help=_("Print scores, counts, comparison and examples as JSON."),
)
def evaluate(
    bundle: Path,
    data: tuple[Path, ...],
    test_set: str | None,
    against: Path | None,
    against_bundle: Path | None,
    tokenized: bool,
    n_examples: int,
    negatives: Path | None,
    output: Path | None,
    confusion: Path | None,
    as_json: bool,
    threshold: float | None,
    baseline_only: bool,
    precision: float | None,
    source_column: str | None,
    target_column: str | None,
    text_column: str | None,
    label_column: str | None,
    tags_column: str | None,
    **decoding: Any,
) -> None:
    """Score a bundle."""
    check_inputs(bundle, data)
    from manyheads.bundle import load
    from manyheads.tasks import PairTask

    named = {"source": source_column, "target": target_column, "text": text_column}
    named |= {"label": label_column, "tags": tags_column}
    columns = {field: column for field, column in named.items() if column}
    changes = decode_changes(**decoding)
    if threshold is not None and precision is not None:
        raise click.UsageError(_("--precision chooses a threshold: leave out --threshold."))
    if against and against_bundle:
        raise click.UsageError(_("--against and --against-bundle exclude each other. Use one of them."))
    if data and test_set:
        raise click.UsageError(_("--test-set chooses among the test sets of the recipe. Omit it, or omit DATA."))
    loaded = with_threshold(load(bundle, device="auto"), bundle, threshold)
    loaded = with_decode_changes(loaded, bundle, changes)
    if baseline_only:
        loaded = loaded.baseline_alone()
    if precision is not None:
        _require_probabilities(loaded, bundle)
    if isinstance(loaded.task, PairTask):
        if negatives:
            raise click.UsageError(_("--out-of-scope needs a classifier; this model generates text."))
        if confusion:
            raise click.UsageError(_("--confusion needs a model that predicts labels; this one generates text."))
        rival = _load_rival(against_bundle) if against_bundle else None
        tests = _test_sets(loaded, bundle, data, columns, test_set)
        comparison = _Comparison(bundle, data, tests, against, against_bundle, rival, tokenized, n_examples)
        cards: dict[str, Card] = dict(comparison.cards(loaded, output))
        _print_cards(cards, None, as_json=as_json)
        comparison.warn_if_tokenized()
        return
    if against or tokenized:
        raise click.UsageError(_("--against and --tokenized need a model that generates text."))
    other = _load_other(against_bundle, loaded) if against_bundle else None
    tests = _test_sets(loaded, bundle, data, columns, test_set)
    if confusion and len(tests) > 1:
        raise click.UsageError(
            _("--confusion needs a single test set. Choose one with --test-set: {tests}.", tests=", ".join(tests))
        )
    if precision is not None and len(tests) > 1:
        raise click.UsageError(
            _("--precision needs a single test set. Choose one with --test-set: {tests}.", tests=", ".join(tests))
        )
    cards = _score_all(loaded, bundle, tests, data)
    if negatives:
        cards = _score_negatives(loaded, cards, tests, negatives)
    if confusion:
        _write_confusion(next(iter(cards.values())), confusion)
    choices = {} if precision is None else _choose_thresholds(loaded, bundle, tests, precision)
    changes_of = {} if other is None else _changes(loaded, other, tests)
    _print_cards(cards, output, as_json=as_json, choices=choices, changes=changes_of)
    if changes_of and not as_json:
        _show_changes(changes_of, against_bundle)
    if choices and not as_json:
        _show_thresholds(choices, bundle)


@dataclass
class _Comparison:
    """Scores the translations of a bundle, and compares them with those of another system if there is one."""

    bundle: Path
    data: Sequence[Path]
    tests: Mapping[str, Rows]
    against: Path | None
    against_bundle: Path | None
    rival: "Bundle | None"
    tokenized: bool
    n_examples: int

    def cards(self, loaded: "Bundle", output: Path | None) -> "dict[str, Card]":
        """Translate all test sets, write the translations to `output`, and return the scorecards."""
        from manyheads.metrics import compare, translation_card
        from manyheads.run import mark, uses_of

        self._check_single_test_set(output)
        others: dict[str, Sequence[str]] = {}
        if self.against:
            others = {name: _read_other_output(self.against, len(rows)) for name, rows in self.tests.items()}
        inputs = [*self.data, *([self.against] if self.against else [])]
        with open_output(output, *map(str, inputs), keep_partial=True) if output else nullcontext() as stream:
            self.answers = _translate(loaded, self.tests, str(self.bundle))
            if stream:
                stream.writelines(line + "\n" for answers in self.answers.values() for line in answers.texts)
        if self.rival:
            others = self._translate_with_rival(self.rival)
        settings = loaded.task.settings
        cards: dict[str, Card] = {}
        for name, answers in self.answers.items():
            differences: Sequence[Difference] = ()
            if name in others:
                language = settings.target_language
                differences = compare(
                    answers.texts, others[name], answers.references, language, tokenized=self.tokenized
                )
            card = translation_card(
                answers,
                settings.target_language,
                is_summary=settings.purpose == "summary",
                is_translation=getattr(loaded.task, "is_translation", False),
                tokenized=self.tokenized,
                n_examples=self.n_examples,
                differences=differences,
                against=str(self.against or self.against_bundle) if name in others else None,
            )
            cards[name] = mark(card, uses_of(loaded, name, self.data))
        return cards

    def _check_single_test_set(self, output: Path | None) -> None:
        if len(self.tests) > 1 and (self.against or output):
            raise click.UsageError(
                _(
                    "{option} needs a single test set, but there are {n_sets} ({names}). Choose one, as in "
                    "--test-set {first}.",
                    option="--against" if self.against else "--output",
                    n_sets=len(self.tests),
                    names=", ".join(self.tests),
                    first=next(iter(self.tests)),
                )
            )

    def _translate_with_rival(self, rival: "Bundle") -> dict[str, Sequence[str]]:
        answers_by_test = _translate(rival, self.tests, str(self.against_bundle))
        n_too_long = sum(answers.n_too_long for answers in answers_by_test.values())
        if n_too_long:
            line = _n(
                "1 source is too long for {bundle}; its translation counts as empty.",
                "{n:,} sources are too long for {bundle}; their translations count as empty.",
                n_too_long,
                bundle=self.against_bundle,
            )
            click.echo(line, err=True)
        return {name: answers.texts for name, answers in answers_by_test.items()}

    def warn_if_tokenized(self) -> None:
        """Warn about a BLEU that does not suit the references: its figures would not be comparable."""
        from manyheads.metrics import looks_tokenized

        for name, answers in self.answers.items():
            is_tokenized = looks_tokenized(answers.references)
            if self.tokenized and not is_tokenized:
                line = _(
                    "{name}: the references do not look tokenized; BLEU (tokenized, lowercased) means little here.",
                    name=name,
                )
                click.echo(line, err=True)
            if is_tokenized and not self.tokenized:
                line = _(
                    "{name}: the references look tokenized. Papers on such text report another BLEU; to "
                    "compare with them, add --tokenized.",
                    name=name,
                )
                click.echo(line, err=True)


def _score_all(loaded: "Bundle", bundle: Path, tests: Mapping[str, Rows], data: Sequence[Path]) -> "dict[str, Card]":
    from manyheads.run import score_rows, uses_of

    cards: dict[str, Card] = {}
    for name, rows in tests.items():
        score = partial(score_rows, loaded.task, settings=loaded.decode, used_for=uses_of(loaded, name, data))
        cards |= _for_each({name: rows}, str(bundle), score)
    return cards


def _score_negatives(
    loaded: "Bundle", cards: "Mapping[str, Card]", tests: Mapping[str, Rows], path: Path
) -> "dict[str, Card]":
    """Return the cards with the scores of telling the lines of a file from the texts of each test set."""
    from dataclasses import replace

    from manyheads.errors import DataError
    from manyheads.tasks import LabelingTask
    from manyheads.text.reading.readers import read_lines

    task = loaded.task
    texts = [line for line in read_lines(path) if line.strip()]
    if not texts:
        raise DataError(_("{path} has no text. Give one text per line that belongs to no label.", path=path))
    found = {}
    for name, rows in tests.items():
        scores = task.score_out_of_scope(rows, texts, path.name) if isinstance(task, LabelingTask) else []
        if not scores:
            raise click.UsageError(
                _(
                    "--out-of-scope needs a classifier trained by this version of manyheads, with at least 10 "
                    "validation rows. Train it again."
                )
            )
        card: Any = cards[name]  # a dataclass, which a protocol cannot say
        found[name] = replace(card, scores=[*card.scores, *scores])
    return found


def _require_probabilities(loaded: "Bundle", bundle: Path) -> None:
    from manyheads.tasks import LabelingTask

    if not isinstance(loaded.task, LabelingTask):
        raise click.UsageError(
            _(
                "--precision needs a classifier or a tagger; {bundle} is a bundle of the task {kind}.",
                bundle=bundle,
                kind=loaded.kind,
            )
        )


def _choose_thresholds(
    loaded: "Bundle", bundle: Path, tests: Mapping[str, Rows], precision: float
) -> "dict[str, ThresholdChoice]":
    from manyheads.metrics import choose_threshold
    from manyheads.tasks import LabelingTask

    assert isinstance(loaded.task, LabelingTask)  # checked by the caller
    found = _for_each(tests, str(bundle), loaded.task.decisions)
    return {name: choose_threshold(decisions, 100 * precision) for name, decisions in found.items()}


def _show_thresholds(choices: "Mapping[str, ThresholdChoice]", bundle: Path) -> None:
    from manyheads.cli.rendering.progress import make_console
    from manyheads.cli.rendering.scorecard import show_threshold

    for name, choice in choices.items():
        show_threshold(name, choice, str(bundle), make_console(plain=False))


def _load_rival(path: Path) -> "Bundle":
    from manyheads.bundle import load
    from manyheads.tasks import PairTask

    rival = load(path, device="auto")
    if not isinstance(rival.task, PairTask):
        raise click.UsageError(
            _("{path} does not generate text with references: its task is {kind}.", path=path, kind=rival.kind)
        )
    return rival


def _load_other(path: Path, loaded: "Bundle") -> "Bundle":
    """Load a bundle of the same task as another."""
    from manyheads.bundle import load

    other = load(path, device="auto")
    if other.kind != loaded.kind:
        raise click.UsageError(
            _("{path} is a bundle of the task {other}, not {kind}.", path=path, other=other.kind, kind=loaded.kind)
        )
    return other


def _changes(loaded: "Bundle", other: "Bundle", tests: Mapping[str, Rows]) -> "dict[str, Change]":
    """Return how much better a bundle is than another, on the same rows."""
    from manyheads.metrics import compare_tallies

    return {
        name: compare_tallies(loaded.task.tally(rows, loaded.decode), other.task.tally(rows, other.decode))
        for name, rows in tests.items()
    }


def _show_changes(changes: "Mapping[str, Change]", other: Path | None) -> None:
    from manyheads.metrics import format_score

    for name, change in changes.items():
        if change.low * change.high <= 0:
            verdict = _("no clear difference")
        else:
            verdict = _("better") if change.cost < 0 else _("worse")
        before, value = (format_score(change.name, figure) for figure in (change.before, change.value))
        line = _(
            "{name}, {metric}: {value}, {other} {before}: {difference:+.1f} [{low:+.1f}, {high:+.1f}], {verdict}",
            name=name,
            metric=change.name,
            value=value,
            other=other,
            before=before,
            difference=change.difference,
            low=change.low,
            high=change.high,
            verdict=verdict,
        )
        click.echo(line)


def _test_sets(
    loaded: "Bundle", bundle: Path, data: Sequence[Path], columns: Mapping[str, str], test_set: str | None
) -> dict[str, Rows]:
    """Return the rows of DATA, or of the test sets of the bundle's recipe."""
    if not data:
        return _recipe_test_sets(loaded, bundle, test_set)
    from manyheads.run.bundle_columns import columns_for

    fields = loaded.task.fields(loaded.task.settings)
    columns = columns_for(loaded, data, fields, columns, column_option)
    name = " + ".join(file.name for file in data)
    return {name: list(loaded.task.read([str(file) for file in data], columns, loaded.task.settings))}


def _recipe_test_sets(loaded: "Bundle", bundle: Path, test_set: str | None) -> dict[str, Rows]:
    from manyheads.errors import DataError
    from manyheads.run import Corpus, Recipe

    recipe = Recipe.from_table(loaded.recipe)
    try:
        tests = Corpus.of(recipe).tests()
        if test_set and test_set not in tests:
            raise click.UsageError(
                _("There is no test set {test_set!r}. Available: {tests}.", test_set=test_set, tests=", ".join(tests))
            )
        return {name: list(rows) for name, rows in tests.items() if test_set in (None, name)}
    except DataError as error:
        raise DataError(
            _("{error} Or give a test set: manyheads evaluate {bundle} DATA.", error=error, bundle=quoted(bundle))
        ) from None


def _read_other_output(path: Path, n_sentences: int) -> list[str]:
    from manyheads.errors import DataError
    from manyheads.text.reading.readers import read_lines

    lines = list(read_lines(path))
    if len(lines) != n_sentences:
        raise DataError(
            _(
                "{path} has {n_lines:,} lines, but the test set has {n_sentences:,} sentences. Line n must be the "
                "other system's translation of sentence n; use an empty line where it has none.",
                path=path,
                n_lines=len(lines),
                n_sentences=n_sentences,
            )
        )
    return lines


def _translate(loaded: "Bundle", tests: Mapping[str, Rows], title: str) -> "dict[str, Answers]":
    from manyheads.tasks import PairTask

    task = loaded.engine_task
    assert isinstance(task, PairTask)  # checked by the caller
    return _for_each(tests, title, partial(task.answer, settings=loaded.decode))


def _for_each(tests: Mapping[str, Rows], title: str, process: "Callable[..., Result]") -> "dict[str, Result]":
    """Return the result of `process(rows, progress=...)` for each test set, with a progress bar on standard error."""
    from rich.console import Console
    from rich.progress import Progress

    results = {}
    screen = Console(stderr=True)
    with Progress(console=screen, transient=True, disable=not screen.is_terminal) as bars:
        for name, rows in tests.items():
            bar = bars.add_task(f"{title}: {name}", total=len(rows))
            results[name] = process(rows, progress=partial(bars.advance, bar))
    return results


def _write_confusion(card: "Card", path: Path) -> None:
    from manyheads.metrics import Confusion
    from manyheads.report.confusion_matrix import confusion_svg

    matrix = next((section for section in card.sections() if isinstance(section, Confusion)), None)
    if matrix is None:
        raise click.UsageError(
            _("There is no confusion matrix: it needs one label for each text or span, and not too many labels.")
        )
    with open_output(path) as stream:
        stream.write(confusion_svg(matrix) + "\n")


def _print_cards(
    cards: "Mapping[str, Card]",
    output: Path | None,
    *,
    as_json: bool,
    choices: "Mapping[str, ThresholdChoice] | None" = None,
    changes: "Mapping[str, Change] | None" = None,
) -> None:
    import json
    from dataclasses import asdict

    from manyheads.cli.rendering.progress import make_console
    from manyheads.cli.rendering.scorecard import show_cards
    from manyheads.metrics import plain_texts

    if as_json:
        payload = {name: asdict(card) for name, card in cards.items()}  # type: ignore[call-overload]
        for name, choice in (choices or {}).items():
            payload[name]["threshold_choice"] = plain_texts(asdict(choice))
        for name, change in (changes or {}).items():
            payload[name]["against"] = asdict(change)
        with open_output(output) as stream:
            stream.write(json.dumps(payload, indent=2, ensure_ascii=False) + "\n")
    else:
        show_cards(cards, make_console(plain=False))
