"""`manyheads lab`: controlled experiments on why the Transformer is built as it is."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from manyheads.cli.options import COUNT
from manyheads.cli.output import program_name, quoted
from manyheads.language import current, pick

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
    short_help=pick("Run experiments on why the Transformer is built so.", "用实验回答 Transformer 为什么这样设计。"),
    help=pick(
        """Run controlled experiments on why the Transformer is built as it is.

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
        """,
        """用对照实验回答 Transformer 为什么这样设计。

        不给 QUESTION：列出所有问题和目前的答案。给出一个问题：用几分钟运行实验，并写出报告网页。
        每次试验完成后立即保存；中断后再次运行同一命令即可继续。cards 写出面试答题卡：约三十个问题，一页网页，可打印。

        \b
        例：
          manyheads lab
          manyheads lab scale
          manyheads lab scale --show
          manyheads lab heads --on recipe.toml
          manyheads lab cards -o cards.html
        """,
    ),
)
@click.argument("question", required=False, metavar="[QUESTION]")
@click.option("--full", is_flag=True, help=pick("Train longer: tens of minutes.", "训练更久：几十分钟。"))
@click.option(
    "--on",
    "recipe",
    type=click.Path(path_type=Path),
    metavar="RECIPE",
    help=pick("Ask the question on the data and the model of a recipe.", "在某个配方的数据和模型上做实验。"),
)
@click.option(
    "--show",
    is_flag=True,
    help=pick("Write the page of stored results; run nothing.", "用已有结果写出网页，不运行实验。"),
)
@click.option(
    "--fresh", is_flag=True, help=pick("Delete stored trials and start over.", "删除已保存的试验，重新开始。")
)
@click.option(
    "--processes",
    type=COUNT,
    help=pick("Number of parallel processes. [default: one per core]", "并行进程数。[默认：每核一个]"),
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help=pick(
        "Folder of the experiment. [default: runs/lab/QUESTION] With cards: the page to write. [default: cards.html]",
        "实验文件夹。[默认：runs/lab/问题] 用于 cards 时：要写出的网页。[默认：cards.html]",
    ),
)
@click.option("--json", "as_json", is_flag=True, help=pick("Print effects and answer as JSON.", "以 JSON 输出结果。"))
@click.option(
    "--plain", is_flag=True, help=pick("Print plain lines instead of a progress bar.", "逐行输出，不显示进度条。")
)
def lab(
    question: str | None,
    full: bool,
    recipe: Path | None,
    show: bool,
    fresh: bool,
    processes: int | None,
    output: Path | None,
    as_json: bool,
    plain: bool,
) -> None:
    """List questions, run one, or write the cards."""
    from manyheads.cli.progress import make_console
    from manyheads.lab.lab_answers import find_question

    console = make_console(plain=plain)
    if processes is not None and processes < 1:
        raise click.UsageError("--processes must be at least 1.")
    if question is None:
        if full or recipe or show or fresh or output:
            raise click.UsageError(f"Name a question: {program_name()} lab scale.")
        _list_questions(console, as_json=as_json)
        return
    if question == _CARDS:
        if full or recipe or show or fresh or as_json:
            raise click.UsageError("cards takes no option but -o.")
        _write_cards(output or Path("cards.html"))
        return
    asked = find_question(question)
    folder = output or _FOLDER / (question if recipe is None else f"{question}-on-{recipe.stem}")
    if folder.exists() and not folder.is_dir():
        raise click.UsageError(f"{folder} is a file. Give a folder with -o.")
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
    _run(asked, folder, console, experiment, full=full, processes=processes, as_json=as_json, plain=plain)


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
        answer = str(found.short_answer) if found else pick("not run yet", "尚未运行")
        console.print(Padding(Text(answer, style="dim"), (0, 0, 0, 4), expand=False), soft_wrap=False)
    click.echo(
        pick(
            f"Run one: {program_name()} lab scale    The cards: {program_name()} lab cards",
            f"运行一个：{program_name()} lab scale    答题卡：{program_name()} lab cards",
        )
    )


def _write_cards(path: Path) -> None:
    from manyheads.cli.output import open_output
    from manyheads.lab.card_page import render_cards

    with open_output(path) as stream:
        stream.write(render_cards(current()))
    click.echo(pick(f"Answer cards: {path}", f"答题卡：{path}"))


def _show_stored(
    question: "Question", folder: Path, console: "Console", experiment: "RecipeExperiment | None", *, as_json: bool
) -> None:
    """Write the page of finished results: those in the folder, else the shipped ones, which no recipe has."""
    from manyheads.lab.lab_answers import answered, own_answer
    from manyheads.lab.result_store import RESULTS, ROWS

    if experiment is not None:
        if not (folder / RESULTS).exists():
            command = f"{program_name()} lab {question.id} --on {quoted(experiment.recipe)}"
            raise click.UsageError(f"{folder} has no finished results on {experiment.recipe}. Run {command}.")
        found: Answered | None = own_answer(experiment.question, folder, experiment.recipe.name, experiment.data)
    else:
        found = answered(question, folder)
    if found is None:
        raise click.UsageError(f"There are no results of {question.id} yet. Run {program_name()} lab {question.id}.")
    if found.is_shipped and (folder / ROWS).exists():
        click.echo(
            pick(
                f"{folder} has no finished results: these come with manyheads.",
                f"{folder} 中的实验尚未完成：以下是随 manyheads 发布的结果。",
            ),
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
    as_json: bool,
    plain: bool,
) -> None:
    """Run an experiment, or resume it, and show its results."""
    from manyheads.lab.lab_answers import Answered
    from manyheads.lab.sweep import sweep

    if not as_json:
        console.print(f"manyheads lab · {question.title}", style="bold", markup=False)
    if experiment is None:
        events = sweep(question, folder, is_full=full, n_processes=processes)
    else:
        question = experiment.question
        for name, reason in experiment.impossible.items():
            label = question.arm(name).label
            click.echo(pick(f"Left out: {label}. {reason}", f"跳过：{label}。{reason}"), err=True)
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
        )
    is_live = console.is_terminal and not plain and not as_json
    done = _follow(events, console, folder, is_live=is_live, is_silent=as_json)
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
                pick(
                    f"Stopped. {n_stored} trials are stored in {folder}: run the same command again to resume.",
                    f"已停止。{n_stored} 次试验已保存在 {folder}：再次运行同一命令即可继续。",
                )
                if n_stored
                else pick("Stopped before the first trial was finished.", "已停止：还没有完成任何试验。"),
                err=True,
            )
            raise SystemExit(130) from None
    raise RuntimeError("A sweep ends with SweepDone.")


def _time_left(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return pick(
        f"{int(seconds) // 60}:{int(seconds) % 60:02d} left", f"剩余 {int(seconds) // 60}:{int(seconds) % 60:02d}"
    )


def _finish(found: "Answered", folder: Path, console: "Console", *, as_json: bool) -> None:
    """Write the page, and print the effects and the answer."""
    import json

    from rich.text import Text

    from manyheads.lab.lab_answers import expectation_name, verdict_name
    from manyheads.lab.question_page import render_question
    from manyheads.storage import atomic_write

    page = folder / "report.html"
    atomic_write(page, render_question(found, current()).encode())
    if as_json:
        click.echo(json.dumps(_as_table(found), ensure_ascii=False, indent=2))
        return
    for effect in found.effects:
        console.print(Text(str(found.describe(effect.comparison))), soft_wrap=False)
        predicted = f"{pick('predicted', '预测')} {expectation_name(effect)}"
        outcome = (str(verdict_name(effect)), "yellow" if effect.verdict == "contrary" else "")
        measured = f"    {predicted} · {pick('measured', '结果')} {found.difference(effect)} · "
        console.print(Text.assemble(measured, outcome))
    console.print()
    console.print(Text(str(found.answer)), soft_wrap=False)
    origin = pick("These results come with manyheads.", "以上结果随 manyheads 发布。") if found.is_shipped else ""
    click.echo(f"\n{origin}\n{pick('Report:', '报告：')} {page}".replace("\n\n", "\n"))


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
        "impossible": dict(found.results.impossible),
    }
