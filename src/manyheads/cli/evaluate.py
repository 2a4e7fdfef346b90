"""`manyheads evaluate`: score a bundle, alone or against another system."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from manyheads.bundle import Bundle
    from manyheads.metrics import Answers, Difference, TranslationCard
    from manyheads.tasks import Card

Rows = list[tuple[str, ...]]


@click.command(short_help="Score a model, with intervals. 给模型评分（含置信区间）。")
@click.argument("bundle", type=click.Path(path_type=Path))
@click.argument("data", nargs=-1, type=click.Path(path_type=Path))
@click.option("--source-column", help="Column of the source, in a .tsv, .csv, .jsonl or .parquet.")
@click.option("--target-column", help="Column of the reference, in the same.")
@click.option("--text-column", help="Column of the text, for models that read one text.")
@click.option("--label-column", help="Column of the label.")
@click.option("--tags-column", help="Column of the tags.")
@click.option("--test-set", "only", help="Which test set of the bundle's recipe to use, without DATA. [default: all]")
@click.option(
    "--against",
    type=click.Path(path_type=Path),
    help="Another system's output, one line per sentence: is the difference more than luck? 与另一系统的译文比较。",
)
@click.option(
    "--against-bundle", type=click.Path(path_type=Path), help="Another bundle, to translate with both. 与另一模型比较。"
)
@click.option(
    "--tokenized",
    is_flag=True,
    help="Also BLEU of the text as it stands, lower-cased: the protocol of papers whose data is tokenized "
    "beforehand. Use it with such data only, to compare with such papers only: it is not comparable with the "
    "default BLEU (the same output has been 37.04 by one and 32.3 by the other). 用于与预先分词的论文结果比较。",
)
@click.option("--examples", type=click.IntRange(min=0), default=10, show_default=True, help="Worst and random, each.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Write the translations here, for other tools to score."
)
@click.option(
    "--confusion",
    type=click.Path(path_type=Path),
    help="Write the confusion matrix of labels here, as a picture (.svg). 将混淆矩阵保存为图片。",
)
@click.option("--json", "as_json", is_flag=True, help="Scores, counts, comparison and examples as JSON.")
def evaluate(
    bundle: Path,
    data: tuple[Path, ...],
    only: str | None,
    against: Path | None,
    against_bundle: Path | None,
    tokenized: bool,
    examples: int,
    output: Path | None,
    confusion: Path | None,
    as_json: bool,
    **named: str | None,
) -> None:
    """Translate a test set and print the scorecard. 翻译测试集并打印评分表。

    DATA is two parallel files, or one .tsv, .csv, .jsonl or .parquet, plain or compressed (.gz, .zst); without it,
    the test sets of the bundle's own recipe are used. [In brackets] is where 95 % of resamples of the test set lie;
    a signature names every choice behind a figure.

    \b
    Example · 例:
      manyheads evaluate runs/quickstart/bundle
      manyheads evaluate runs/mail/bundle test.en test.de --against other.de
      manyheads evaluate runs/multi30k/bundle test.tok.en test.tok.de --tokenized
    """
    from manyheads.bundle import load
    from manyheads.cli.output import open_output
    from manyheads.metrics import translation_card
    from manyheads.tasks import Seq2Seq

    columns = {option.removesuffix("_column"): column for option, column in named.items() if column}
    if against and against_bundle:
        raise click.UsageError("--against and --against-bundle exclude one another. Choose one.")
    if data and only:
        raise click.UsageError("--test-set chooses among the bundle's own test sets; leave it out, or DATA.")
    loaded = load(bundle, device="auto")
    if not isinstance(loaded.task, Seq2Seq):
        if against or against_bundle or tokenized:
            raise click.UsageError("--against, --against-bundle and --tokenized are for translations.")
        _evaluate_other(loaded, bundle, data, columns, only, output=output, confusion=confusion, as_json=as_json)
        return
    if confusion:
        raise click.UsageError("--confusion is for models that give labels; this one translates.")
    rival = load(against_bundle, device="auto") if against_bundle else None
    if rival and not isinstance(rival.task, Seq2Seq):
        raise click.UsageError(f"{against_bundle} does not translate: it is of task.kind = {rival.kind}.")
    if data:
        name = " + ".join(file.name for file in data)
        tests = {name: list(loaded.task.read([str(file) for file in data], columns, loaded.task.settings))}
    else:
        tests = _own_tests(loaded, bundle, only)
    if len(tests) > 1 and (against or output):
        raise click.UsageError(
            f"{'--against' if against else '--output'} is for one test set, and there are {len(tests)} "
            f"({', '.join(tests)}). Choose one with --test-set, as in --test-set {next(iter(tests))}."
        )
    others: dict[str, Sequence[str]] = {}
    if against:
        others = {name: _read_other_output(against, len(pairs)) for name, pairs in tests.items()}
    read = [*data, *([against] if against else [])]
    with open_output(output, *map(str, read)) if output else nullcontext() as stream:
        answers = _translate(loaded, tests, str(bundle))
        if stream:
            stream.writelines(line + "\n" for found in answers.values() for line in found.texts)
    if rival:
        found = _translate(rival, tests, str(against_bundle))
        _report_too_long(found, str(against_bundle))
        others = {name: found[name].texts for name in tests}

    cards = {
        name: translation_card(
            answers[name],
            loaded.task.settings.target_language,
            is_summary=loaded.task.settings.purpose == "summary",
            tokenized=tokenized,
            n_examples=examples,
            differences=_compare(loaded, answers[name], others.get(name), tokenized=tokenized),
        )
        for name in tests
    }
    rival_name = str(against or against_bundle or "")
    if as_json:
        _write_json(cards, rival_name)
    else:
        _show(cards, rival_name)
    _warn_if_tokenized(answers, tokenized=tokenized)


def _evaluate_other(
    loaded: "Bundle",
    bundle: Path,
    data: tuple[Path, ...],
    columns: Mapping[str, str],
    only: str | None,
    *,
    output: Path | None,
    confusion: Path | None,
    as_json: bool,
) -> None:
    """The scorecard of a model that does not translate."""
    import json
    from dataclasses import asdict

    from rich.console import Console
    from rich.progress import Progress

    from manyheads.cli.output import open_output
    from manyheads.cli.progress import make_console
    from manyheads.cli.scorecard import show_card

    if data:
        name = " + ".join(file.name for file in data)
        tests = {name: list(loaded.task.read([str(file) for file in data], columns, loaded.task.settings))}
    else:
        tests = _own_tests(loaded, bundle, only)
    if confusion and len(tests) > 1:
        raise click.UsageError(f"--confusion is for one test set. Choose one with --test-set: {', '.join(tests)}.")
    cards = {}
    screen = Console(stderr=True)
    with Progress(console=screen, transient=True, disable=not screen.is_terminal) as bars:
        for name, rows in tests.items():
            bar = bars.add_task(f"{bundle}: {name}", total=len(rows))
            cards[name] = loaded.task.score(rows, loaded.decode, partial(bars.advance, bar))
    if confusion:
        _draw(next(iter(cards.values())), confusion)
    if as_json:
        payload = {name: asdict(card) for name, card in cards.items()}  # type: ignore[call-overload]
        with open_output(output) as stream:
            stream.write(json.dumps(payload, indent=2, ensure_ascii=False) + "\n")
        return
    console = make_console(plain=False)
    for name, card in cards.items():
        show_card(name, card, console)


def _draw(card: "Card", path: Path) -> None:
    from manyheads.cli.output import open_output
    from manyheads.metrics import LabelCard, SpanCard
    from manyheads.report.confusion_matrix import confusion_svg

    found = card.confusion if isinstance(card, LabelCard | SpanCard) else None
    if found is None:
        raise click.UsageError(
            "There is no confusion matrix to draw: it needs one label for each text or span, and not too many labels."
        )
    with open_output(path) as stream:
        stream.write(confusion_svg(found) + "\n")


def _own_tests(loaded: "Bundle", bundle: Path, only: str | None) -> dict[str, Rows]:
    from manyheads.errors import DataError
    from manyheads.run import Corpus, Recipe

    recipe = Recipe.from_table(loaded.recipe)
    try:
        tests = Corpus.of(recipe).tests()
        if only and only not in tests:
            raise click.UsageError(f"There is no test set {only!r}. There is: {', '.join(tests)}.")
        return {name: list(pairs) for name, pairs in tests.items() if only in (None, name)}
    except DataError as error:
        raise DataError(f"{error} Or name a test set: manyheads evaluate {bundle} SOURCE TARGET.") from None


def _read_other_output(path: Path, n_sentences: int) -> list[str]:
    from manyheads.errors import DataError
    from manyheads.text.readers import read_lines

    lines = list(read_lines(path))
    if len(lines) != n_sentences:
        raise DataError(
            f"{path} has {len(lines):,} lines, but the test set has {n_sentences:,} sentences. "
            "Line n must be the other system's translation of sentence n, an empty line where it has none."
        )
    return lines


def _translate(loaded: "Bundle", tests: Mapping[str, Rows], title: str) -> "dict[str, Answers]":
    from rich.console import Console
    from rich.progress import Progress

    from manyheads.tasks import Seq2Seq

    found = {}
    screen = Console(stderr=True)
    with Progress(console=screen, transient=True, disable=not screen.is_terminal) as bars:
        for name, pairs in tests.items():
            bar = bars.add_task(f"{title}: {name}", total=len(pairs))
            task = loaded.engine_task
            assert isinstance(task, Seq2Seq)  # the others have been turned away
            found[name] = task.answer(pairs, loaded.decode, partial(bars.advance, bar))
    return found


def _compare(
    loaded: "Bundle", answers: "Answers", others: Sequence[str] | None, *, tokenized: bool
) -> "Sequence[Difference]":
    from manyheads.metrics import compare

    if others is None:
        return ()
    language = loaded.task.settings.target_language
    return compare(answers.texts, others, answers.references, language, tokenized=tokenized)


def _write_json(cards: "Mapping[str, TranslationCard]", rival: str) -> None:
    import json
    from dataclasses import asdict

    from manyheads.cli.output import open_output

    payload = {name: asdict(card) | ({"against": rival} if rival else {}) for name, card in cards.items()}
    with open_output(None) as stream:
        stream.write(json.dumps(payload, indent=2, ensure_ascii=False) + "\n")


def _show(cards: "Mapping[str, TranslationCard]", rival: str) -> None:
    from manyheads.cli.progress import make_console
    from manyheads.cli.scorecard import set_title, show_cards, show_differences, show_examples

    console = make_console(plain=False)
    for name, card in cards.items():
        for examples, title in (
            (card.worst, "worst by chrF · 得分最低的句子"),
            (card.random, "drawn at random · 随机抽取的句子"),
        ):
            if examples:
                heading = f"{set_title(name)}: {len(examples)} of {card.n_sentences:,} sentences, {title}"
                console.print(heading, style="bold", markup=False)
                show_examples(examples, console)
                console.print()
    console.print("Score · 得分", style="bold")
    show_cards(cards, console)
    for name, card in cards.items():
        if card.differences:
            title = f"\n{set_title(name)}: compared with {rival} · 与之比较"
            console.print(title, style="bold", markup=False)
            show_differences(card.differences, console)


def _report_too_long(found: "Mapping[str, Answers]", title: str) -> None:
    """What the other bundle could not do is no merit of this one."""
    n_too_long = sum(answers.n_too_long for answers in found.values())
    if n_too_long:
        click.echo(f"{title} cannot read {n_too_long:,} of the sources: they are too long for it.", err=True)


def _warn_if_tokenized(answers: "Mapping[str, Answers]", *, tokenized: bool) -> None:
    """A BLEU that does not fit the text is the commonest way to compare what cannot be compared."""
    from manyheads.metrics import looks_tokenized

    for name, found in answers.items():
        looks_tokenized_already = looks_tokenized(found.references)
        if tokenized and not looks_tokenized_already:
            told = "BLEU (tokenized, lowercased) means little here."
            click.echo(f"{name}: its references do not look tokenized; {told}", err=True)
        if looks_tokenized_already and not tokenized:
            told = "papers on such text report another BLEU. To compare with them, add --tokenized."
            click.echo(f"{name}: its references look tokenized already; {told}", err=True)
