"""`manyheads lab`: controlled experiments on why the Transformer is built as it is."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from manyheads.cli.options import COUNT
from manyheads.cli.rendering.output import program_name, quoted
from manyheads.language import current
from manyheads.messages import _

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from manyheads.lab.lab_answers import Answered
    from manyheads.lab.question import Question
    from manyheads.lab.recipe_trials import RecipeExperiment
    from manyheads.lab.sweep import SweepDone, SweepEvent

_CARDS = "cards"
_FOLDER = Path("runs/lab")


@click.command(
    short_help=_("Run experiments on why the Transformer is built so."),
    help=_("""Run controlled experiments on why the Transformer is built as it is.

        Without QUESTION: list the questions with their answers so far. With one: run its experiment in a few minutes
        and write a report page. Finished trials are stored at once; run the same command again to resume. `cards`
        writes the answer cards: about thirty interview questions on one page that prints well.

        \b
        Example:
          manyheads lab
          manyheads lab scale
          manyheads lab scale --show
          manyheads lab heads --on recipe.toml
          manyheads lab cards -o cards.html
          manyheads lab cards --quiz
        """),
)
@click.argument("question", required=False, metavar="[QUESTION]")
@click.option("--full", is_flag=True, help=_("Train longer: tens of minutes."))
@click.option(
    "--on",
    "recipe",
    type=click.Path(path_type=Path),
    metavar="RECIPE",
    help=_("Ask the question on the data and the model of a recipe."),
)
@click.option(
    "--show",
    is_flag=True,
    help=_("Write the page of stored results; run nothing."),
)
@click.option("--fresh", is_flag=True, help=_("Delete stored trials and start over."))
@click.option(
    "--processes",
    type=COUNT,
    help=_("Number of parallel processes. [default: one per core]"),
)
@click.option(
    "--minutes",
    type=click.FloatRange(min=0),
    help=_("Start no trial after this many minutes; the results name the cells that are missing. [default: no limit]"),
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help=_(
        "Folder of the experiment. [default: runs/lab/QUESTION] With cards: the page to write. [default: cards.html]"
    ),
)
@click.option("--quiz", is_flag=True, help=_("With cards: ask the questions here; those you did not know come again."))
@click.option("--json", "as_json", is_flag=True, help=_("Print effects and answer as JSON."))
@click.option("--plain", is_flag=True, help=_("Print plain lines instead of a progress bar."))
def lab(
    question: str | None,
    full: bool,
    recipe: Path | None,
    show: bool,
    fresh: bool,
    processes: int | None,
    minutes: float | None,
    output: Path | None,
    quiz: bool,
    as_json: bool,
    plain: bool,
) -> None:
    """List questions, run one, or write the cards."""
    from manyheads.cli.rendering.progress import make_console
    from manyheads.lab.lab_answers import find_question

    console = make_console(plain=plain)
    if processes is not None and processes < 1:
        raise click.UsageError(_("--processes must be at least 1."))
    if quiz and (question != _CARDS or output):
        raise click.UsageError(
            _("--quiz belongs to {program_name} lab cards, without -o.", program_name=program_name())
        )
    if question is None:
        if full or recipe or show or fresh or output:
            raise click.UsageError(_("Name a question: {program_name} lab scale.", program_name=program_name()))
        _list_questions(console, as_json=as_json)
        return
    if question == _CARDS:
        if full or recipe or show or fresh or as_json:
            raise click.UsageError(_("cards takes no option but -o and --quiz."))
        if quiz:
            _ask_cards()
            return
        _write_cards(output or Path("cards.html"))
        return
    asked = find_question(question)
    folder = output or _FOLDER / (question if recipe is None else f"{question}-on-{recipe.stem}")
    if folder.exists() and not folder.is_dir():
        raise click.UsageError(_("{folder} is a file. Give a folder with -o.", folder=folder))
    experiment: RecipeExperiment | None = None
    if recipe is not None:
        from manyheads.lab.recipe_trials import ask_on_recipe

        experiment = ask_on_recipe(asked, recipe, folder / "data", is_full=full)
    if show:
        _show_stored(asked, folder, console, experiment, as_json=as_json)
        return
    if fresh:
        from manyheads.lab.result_store import ResultFolder

        ResultFolder(folder).clear()
    _run(
        asked,
        folder,
        console,
        experiment,
        full=full,
        processes=processes,
        minutes=minutes,
        as_json=as_json,
        plain=plain,
    )


def _list_questions(console: "Console", *, as_json: bool) -> None:
    """Print every question with its answer so far."""
    import json

    from rich.padding import Padding
    from rich.text import Text

    from manyheads.lab.lab_answers import answered
    from manyheads.lab.questions import QUESTIONS

    rows = [(question, answered(question, _FOLDER / name)) for name, question in QUESTIONS.items()]
    if as_json:
        table = {q.id: {"title": str(q.title), "answer": str(a.answer) if a else None} for q, a in rows}
        click.echo(json.dumps(table, ensure_ascii=False, indent=2))
        return
    for question, found in rows:
        console.print(Text.assemble((f"{question.id}  ", "bold"), str(question.title)))
        answer = str(found.short_answer) if found else _("not run yet")
        console.print(Padding(Text(answer, style="dim"), (0, 0, 0, 4), expand=False), soft_wrap=False)
    click.echo(
        _("Run one: {program_name} lab scale    The cards: {program_name} lab cards", program_name=program_name())
    )


def _write_cards(path: Path) -> None:
    from manyheads.cli.rendering.output import open_output
    from manyheads.lab.card_page import render_cards

    with open_output(path) as stream:
        stream.write(render_cards(current()))
    click.echo(_("Answer cards: {path}", path=path))


def _ask_cards() -> None:
    """Ask every card in random order; what was not known is asked again later."""
    import random

    from manyheads.lab.card_page import filled_card
    from manyheads.lab.cards import CARDS
    from manyheads.lab.lab_answers import shipped_answers

    answers = shipped_answers()
    waiting = random.sample(CARDS, len(CARDS))
    n_known = 0
    try:
        while waiting:
            card = filled_card(waiting.pop(0), answers)
            click.echo(f"\n{card.question}")
            click.prompt(_("Enter shows the answer"), default="", show_default=False)
            click.echo(f"{card.answer}" + (f"\n    {card.formula}" if card.formula else ""))
            if click.confirm(_("Did you know it?"), default=True):
                n_known += 1
            else:
                waiting.insert(min(3, len(waiting)), card)
    except click.Abort:
        click.echo()
    click.echo(_("You knew {n_known} of {n} cards.", n_known=n_known, n=len(CARDS)))


def _show_stored(
    question: "Question", folder: Path, console: "Console", experiment: "RecipeExperiment | None", *, as_json: bool
) -> None:
    """Write the page of finished results: those in the folder, else the shipped ones, which no recipe has."""
    from manyheads.lab.lab_answers import answered, own_answer
    from manyheads.lab.result_store import RESULTS, ROWS

    if experiment is not None:
        if not (folder / RESULTS).exists():
            command = f"{program_name()} lab {question.id} --on {quoted(experiment.recipe)}"
            raise click.UsageError(
                _(
                    "{folder} has no finished results on {recipe}. Run {command}.",
                    folder=folder,
                    recipe=experiment.recipe,
                    command=command,
                )
            )
        found: Answered | None = own_answer(experiment.question, folder, experiment.recipe.name, experiment.data)
    else:
        found = answered(question, folder)
    if found is None:
        raise click.UsageError(
            _(
                "There are no results of {id} yet. Run {program_name} lab {id}.",
                id=question.id,
                program_name=program_name(),
            )
        )
    if found.is_shipped and (folder / ROWS).exists():
        click.echo(
            _("{folder} has no finished results: these come with manyheads.", folder=folder),
            err=True,
        )
    folder.mkdir(parents=True, exist_ok=True)
    _finish(found, folder, console, as_json=as_json)


def _run(
    question: "Question",
    folder: Path,
    console: "Console",
    experiment: "RecipeExperiment | None",
    *,
    full: bool,
    processes: int | None,
    minutes: float | None,
    as_json: bool,
    plain: bool,
) -> None:
    """Run an experiment, or resume it, and show its results."""
    from manyheads.lab.lab_answers import Answered
    from manyheads.lab.sweep import sweep

    if not as_json:
        console.print(f"manyheads lab · {question.title}", style="bold", markup=False)
    max_seconds = None if minutes is None else 60 * minutes
    if experiment is None:
        events = sweep(question, folder, is_full=full, n_processes=processes, max_seconds=max_seconds)
    else:
        question = experiment.question
        for name, reason in experiment.impossible.items():
            label = question.arm(name).label
            click.echo(_("Left out: {label}. {reason}", label=label, reason=reason), err=True)
        experiment.prepare()
        events = sweep(
            question,
            folder,
            is_full=full,
            n_processes=processes,
            run=experiment.run,
            size=experiment.recipe.name,
            data=experiment.data,
            impossible=experiment.impossible,
            max_seconds=max_seconds,
        )
    is_live = console.is_terminal and not plain and not as_json
    done = _follow(events, console, folder, is_live=is_live, is_silent=as_json)
    if done.n_missing:
        click.echo(
            _(
                "The time is up: {n_missing} trials are missing. Run the same command again to resume.",
                n_missing=done.n_missing,
            ),
            err=True,
        )
    _finish(Answered(question, done.results), folder, console, as_json=as_json)


def _follow(
    events: "Iterator[SweepEvent]", console: "Console", folder: Path, *, is_live: bool, is_silent: bool
) -> "SweepDone":
    """Show progress with the time left, and return the last event."""
    from rich.progress import BarColumn, Progress, TextColumn

    from manyheads.lab.sweep import SweepDone, TrialDone

    shown, n_stored = -1, 0
    columns = (BarColumn(), TextColumn("{task.completed}/{task.total}"), TextColumn("{task.description}"))
    with Progress(*columns, console=console, disable=not is_live) as progress:
        bar = progress.add_task("", total=None)
        try:
            for event in events:
                if isinstance(event, SweepDone):
                    return event
                n_stored, left, cell = event.n_done, "", ""
                if isinstance(event, TrialDone):
                    left = _time_left(event.seconds_left)
                    cell = f"{event.row.arm} {event.row.condition}".removesuffix(" -")
                progress.update(bar, completed=event.n_done, total=event.n_all, description=f"{left}  {cell}")
                tenth = 10 * event.n_done // event.n_all
                if not is_live and not is_silent and tenth > shown:
                    shown = tenth
                    console.print(f"  {event.n_done}/{event.n_all}  {left}".rstrip(), markup=False)
        except KeyboardInterrupt:
            progress.stop()
            click.echo(
                _(
                    "Stopped. {n_stored} trials are stored in {folder}: run the same command again to resume.",
                    n_stored=n_stored,
                    folder=folder,
                )
                if n_stored
                else _("Stopped before the first trial was finished."),
                err=True,
            )
            raise SystemExit(130) from None
    raise RuntimeError("A sweep ends with SweepDone.")


def _time_left(seconds: float | None) -> str:
    if seconds is None:
        return ""
    minutes, rest = divmod(int(seconds), 60)
    return _("{minutes}:{seconds:02d} left", minutes=minutes, seconds=rest)


def _finish(found: "Answered", folder: Path, console: "Console", *, as_json: bool) -> None:
    """Write the page, and print the effects and the answer."""
    import json

    from rich.text import Text

    from manyheads.lab.lab_answers import expectation_name, verdict_name
    from manyheads.lab.question_page import asked_and_stopped, render_question
    from manyheads.storage import atomic_write

    page = folder / "report.html"
    atomic_write(page, render_question(found, current()).encode())
    if as_json:
        click.echo(json.dumps(_as_table(found), ensure_ascii=False, indent=2))
        return
    for effect in found.effects:
        console.print(Text(str(found.describe(effect.comparison))), soft_wrap=False)
        outcome = (str(verdict_name(effect)), "yellow" if effect.verdict == "contrary" else "")
        measured = _(
            "predicted {direction} · measured {difference} · ",
            direction=expectation_name(effect),
            difference=found.difference(effect),
        )
        console.print(Text.assemble(f"    {measured}", outcome))
    for comparison in found.unmeasured:
        console.print(Text(str(found.describe(comparison))), soft_wrap=False)
        console.print(Text("    " + _("not measured")))
    for arm, condition, faults in found.gaps():
        cell = f"{arm.label} · {condition.label}".removesuffix(" · ")
        console.print(Text(f"{cell}: {'; '.join(map(str, faults))}", style="yellow"), soft_wrap=False)
    console.print()
    console.print(Text(str(found.answer)), soft_wrap=False)
    console.print(Text(str(asked_and_stopped(found)), style="dim"), soft_wrap=False)
    origin = _("These results come with manyheads.") if found.is_shipped else ""
    report = _("Report: {page}", page=page)
    click.echo(f"\n{origin}\n{report}".replace("\n\n", "\n"))


def _as_table(found: "Answered") -> dict[str, object]:
    return {
        "question": found.question.id,
        "title": str(found.question.title),
        "answer": str(found.answer),
        "size": found.results.size,
        "stamp": dict(found.results.stamp),
        "effects": [
            {
                "arm": effect.comparison.arm,
                "against": effect.comparison.against,
                "condition": effect.comparison.condition,
                "measure": effect.comparison.measure,
                "predicted": effect.comparison.expect,
                "mean": effect.mean,
                "low": effect.low,
                "high": effect.high,
                "is_ratio": effect.is_ratio,
                "p": effect.p,
                "corrected_p": effect.corrected_p,
                "verdict": effect.verdict,
            }
            for effect in found.effects
        ],
        "asks": found.question.asks,
        "not_measured": [str(found.describe(comparison)) for comparison in found.unmeasured],
        "keep_in_mind": [
            {"arm": arm.name, "condition": condition.name, "why": list(map(str, faults))}
            for arm, condition, faults in found.gaps()
        ],
        "impossible": dict(found.results.impossible),
    }
