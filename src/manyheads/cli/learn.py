"""`manyheads learn`: exercises to write yourself, and an examiner that names the bug."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from manyheads.cli.rendering.output import cell_width, open_output, padded, program_name, quoted, wrap_cells
from manyheads.messages import _, _n

if TYPE_CHECKING:
    from manyheads.learn.examiner import Verdict
    from manyheads.learn.submission import Submission

_PATH = click.Path(path_type=Path)


class _Learn(click.Group):
    """The subcommands in order; an unknown one gets a suggestion."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            from manyheads.settings import did_you_mean

            hint = did_you_mean(args[0], self.commands)
            ctx.fail(_("There is no command {name!r}. {hint}", name=args[0], hint=hint))
        return super().resolve_command(ctx, args)


@click.group(
    cls=_Learn,
    invoke_without_command=True,
    short_help=_("Write the Transformer yourself; an examiner names your bug."),
    help=_("""Write the parts of the Transformer yourself, in numpy or torch, and let an examiner name your bug.

        Without a command: the map of the exercises and what you have solved. `start` writes a file with a statement
        and a signature. `check` runs it in a child process with limits and says what is wrong, with the smallest input
        on which it shows.

        \b
        Example:
          manyheads learn
          manyheads learn start attention
          manyheads learn check attention.py
          manyheads learn check attention.py --hint 1
        """),
)
@click.pass_context
def learn(ctx: click.Context) -> None:
    """Show the map, or run a subcommand."""
    if ctx.invoked_subcommand is None:
        _show_map()


def _show_map() -> None:
    from manyheads.learn.exercise import all_exercises
    from manyheads.learn.learner_progress import read_progress

    progress, exercises = read_progress(), all_exercises()
    chapter = ""
    for name, exercise in exercises.items():
        if exercise.chapter != chapter:
            chapter = exercise.chapter
            click.echo(_chapter_name(chapter))
        attempts = progress.get(name)
        mark = "✓" if attempts and attempts.solved else "…" if attempts else " "
        minutes = _("{n} min", n=exercise.minutes)
        click.echo(f"  {mark} {padded(name, 20)} {padded(minutes, 8)} {exercise.title}")
    n_solved = sum(1 for name in exercises if name in progress and progress[name].solved)
    click.echo(_("{n_solved} of {n} solved.", n_solved=n_solved, n=len(exercises)))
    following = next((name for name in exercises if name not in progress or not progress[name].solved), None)
    if following is not None:
        click.echo(_("Next: {program_name} learn start {name}", program_name=program_name(), name=following))


def _chapter_name(chapter: str) -> str:
    names = {
        "attention": _("Attention"),
        "heads": _("Heads"),
        "norms": _("Norms"),
        "positions": _("Positions and embeddings"),
        "layers": _("Layers and the whole model"),
        "training": _("Training"),
        "decoding": _("Decoding"),
        "text": _("Text and scores"),
    }
    return names[chapter]


@learn.command(
    short_help=_("Write the file of an exercise."),
    help=_("""Write the file of an exercise: statement, shapes and signature, and no solution.

        \b
        Example:
          manyheads learn start softmax
          manyheads learn start attention --notebook
        """),
)
@click.argument("name")
@click.option("--notebook", is_flag=True, help=_("Write a Jupyter notebook."))
@click.option("-o", "--output", type=_PATH, help=_("The file to write. [default: NAME.py or NAME.ipynb]"))
@click.option("--overwrite", is_flag=True, help=_("Replace an existing file."))
def start(name: str, notebook: bool, output: Path | None, overwrite: bool) -> None:
    """Write the file of an exercise."""
    from manyheads.errors import LearnError
    from manyheads.learn.exercise import find_exercise
    from manyheads.learn.learner_progress import record
    from manyheads.learn.starting_file import make_file, make_notebook

    exercise = find_exercise(name)
    path = output or Path(f"{name.replace('-', '_')}{'.ipynb' if notebook else '.py'}")
    if path.exists() and not overwrite:
        raise LearnError(_("{path} exists already. Choose another file with -o, or add --overwrite.", path=path))
    is_notebook = notebook or path.suffix == ".ipynb"
    with open_output(path) as stream:
        stream.write(make_notebook(exercise) if is_notebook else make_file(exercise))
    record(name, is_check=False)
    click.echo(_("Wrote {path}", path=path))
    click.echo(_n("About 1 minute.", "About {n} minutes.", exercise.minutes))
    for line in _links(name):
        click.echo(line)
    click.echo(_("Check it: {program_name} learn check {path}", program_name=program_name(), path=quoted(path)))


def _links(name: str) -> list[str]:
    from manyheads.learn.exercise import find_exercise

    links = find_exercise(name).links
    lines = []
    if links.walk is not None:
        lines.append(
            _("See the numbers: {program_name} walk --steps {step}", program_name=program_name(), step=links.walk)
        )
    if links.lab is not None:
        lines.append(
            _("Ask why: {program_name} lab {question} --show", program_name=program_name(), question=links.lab)
        )
    return lines


@learn.command(
    short_help=_("Check a file and name the bug."),
    help=_("""Run a file in a child process, with limits on time, memory, files and network, and say what is wrong.

        The answer is one sentence, and the smallest input on which it shows with the expected result and yours. If no
        known mistake behaves like the file, the check says which property fails and claims no cause. The exit code is
        0 if the file is correct and 1 if not.

        \b
        Example:
          manyheads learn check attention.py
          manyheads learn check attention.py --hint 3
          manyheads learn check attention.ipynb
          manyheads learn check attention.py --watch
        """),
)
@click.argument("file", type=_PATH)
@click.option("--exercise", help=_("The exercise, if the file does not name it."))
@click.option("--hint", type=click.IntRange(0, 3), default=0, help=_("Show hints up to this level, from 1 to 3."))
@click.option("--watch", is_flag=True, help=_("Check again whenever the file is saved; end with Ctrl+C."))
@click.option("--json", "as_json", is_flag=True, help=_("Print the verdict as JSON."))
def check(file: Path, exercise: str | None, hint: int, watch: bool, as_json: bool) -> None:
    """Check a file."""
    if watch:
        _watch(file, exercise, hint)
        return
    verdict, submission = _examine(file, exercise)
    if as_json:
        import json

        click.echo(json.dumps(_as_table(verdict), ensure_ascii=False, indent=2))
    else:
        _show(verdict, submission, hint)
    if verdict.outcome != "solved":
        raise SystemExit(1)


def _examine(file: Path, exercise: str | None) -> tuple["Verdict", "Submission"]:
    from manyheads.learn.examiner import examine
    from manyheads.learn.exercise import all_exercises
    from manyheads.learn.learner_progress import record
    from manyheads.learn.submission import read_submission

    submission = read_submission(file, all_exercises(), name=exercise)
    verdict = examine(submission)
    record(submission.exercise, is_check=True, is_solved=verdict.outcome == "solved")
    return verdict, submission


def _show(verdict: "Verdict", submission: "Submission", hint: int) -> None:
    import shutil

    from manyheads.learn.verdict_text import show_verdict

    width = min(shutil.get_terminal_size().columns, 100)
    for line in show_verdict(verdict, submission, hints=hint, width=width):
        if line.startswith("  ") or cell_width(line) <= width:
            click.echo(line)
        else:
            click.echo("\n".join(wrap_cells(line, width)))


def _watch(file: Path, exercise: str | None, hint: int) -> None:
    """Check a file whenever its content changes, until it is interrupted."""
    import time

    from manyheads.errors import ManyheadsError

    seen: bytes | None = None
    try:
        while True:
            content = file.read_bytes() if file.is_file() else b""
            if content != seen:
                seen = content
                try:
                    _show(*_examine(file, exercise), hint)
                except ManyheadsError as error:
                    click.echo(str(error), err=True)
                click.echo(_("— waiting for {file} to change; Ctrl+C ends —", file=file))
            time.sleep(0.3)
    except KeyboardInterrupt:
        click.echo()


@learn.command(
    short_help=_("Find the fault in a file."),
    help=_("""Write a file with one planted fault, to be found: fix it and check it, or name it with --answer.

        Without NUMBER: list the cases. `check` says whether the fault is still there and shows the smallest input, but
        does not name it. --hint helps.

        \b
        Example:
          manyheads learn debug
          manyheads learn debug 2
          manyheads learn check debug_2.py
          manyheads learn debug 2 --answer no-scale
        """),
)
@click.argument("number", type=int, required=False)
@click.option("--seed", type=click.IntRange(0, 1_000_000), help=_("Which of the faults. [default: random]"))
@click.option("--answer", metavar="NAME", help=_("Name the fault of debug_NUMBER.py."))
@click.option("-o", "--output", type=_PATH, help=_("The file. [default: debug_NUMBER.py]"))
@click.option("--overwrite", is_flag=True, help=_("Replace an existing file."))
def debug(number: int | None, seed: int | None, answer: str | None, output: Path | None, overwrite: bool) -> None:
    """Write a file with a planted fault, or grade the name of it."""
    from manyheads.learn.debugging import debug_cases

    if number is None:
        for position, case in enumerate(debug_cases(), 1):
            click.echo(f"  {position:2d}  {case.exercise}")
        click.echo(_("Write one: {program_name} learn debug 1", program_name=program_name()))
        return
    path = output or Path(f"debug_{number}.py")
    if answer is None:
        _write_debug_file(path, number, seed, overwrite=overwrite)
    else:
        _grade_name(path, answer)


def _write_debug_file(path: Path, number: int, seed: int | None, *, overwrite: bool) -> None:
    import random

    from manyheads.errors import LearnError
    from manyheads.learn.debugging import MAX_SEED, find_case, make_debug_file

    _case, exercise = find_case(number)
    if path.exists() and not overwrite:
        raise LearnError(_("{path} exists already. Choose another file with -o, or add --overwrite.", path=path))
    with open_output(path) as stream:
        stream.write(make_debug_file(number, random.randrange(MAX_SEED) if seed is None else seed))
    command = program_name()
    click.echo(_("Wrote {path}", path=path))
    click.echo(_("Fix it: {command} learn check {path}", command=command, path=quoted(path)))
    names = ", ".join(exercise.variants)
    click.echo(_("Or name it: {command} learn debug {number} --answer NAME", command=command, number=number))
    click.echo("\n".join(wrap_cells(_("Names: {names}", names=names), 80)))


def _grade_name(path: Path, name: str) -> None:
    from manyheads.learn.debugging import grade_name

    is_right, exercise, fault = grade_name(path, name)
    if not is_right:
        click.echo(_("No, that is not it. You said: {sentence}", sentence=exercise.variants[name]))
        raise SystemExit(1)
    click.echo(_("Right. {sentence}", sentence=exercise.variants[fault.variant]))


def _as_table(verdict: "Verdict") -> dict[str, object]:
    return {
        "exercise": verdict.exercise.name,
        "outcome": verdict.outcome,
        "mistakes": list(verdict.variants),
        "sentences": [] if verdict.outcome == "solved" else verdict.sentences(),
        "is_certain": verdict.is_certain,
        "seconds": round(verdict.seconds, 3),
    }
