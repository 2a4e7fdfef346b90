"""`manyheads quickstart`: train, score and try a model on the built-in corpus."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from manyheads.cli.rendering.output import program_name
from manyheads.messages import _, _n

if TYPE_CHECKING:
    from manyheads.bundle import Bundle
    from manyheads.lens.visible_ablation import VisibleAblation
    from manyheads.tasks.proposal import Quickstart

_SURVEY = 80  # texts to observe heads on: seconds
_N_TRIED = 20  # held-out texts, of which one is to be answered without a warning
_LANGUAGES = {"en": "English", "zh": "中文", "de": "Deutsch"}


class _TaskName(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.3
    """The name of a task that brings a quickstart. The tasks are imported only when the names are needed."""

    name = "task"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return f"[{'|'.join(_quickstarts())}]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in _quickstarts():
            choices = ", ".join(map(repr, _quickstarts()))
            self.fail(_("{value!r} is not one of {choices}.", value=value, choices=choices), param, ctx)
        return str(value)


def _quickstarts() -> "dict[str, Quickstart]":
    """Return the quickstart of each task that brings one, by its name."""
    from manyheads.tasks import TASKS

    quickstarts = (getattr(task, "quickstart", None) for task in TASKS.values())
    return {quickstart.name: quickstart for quickstart in quickstarts if quickstart is not None}


@click.command(
    short_help=_("Train a small model on the built-in corpus in minutes."),
    help=_("""Train a model on the built-in corpus: text, tokenizer, training, scores, bundle.

        Nothing is downloaded. Run the command again to resume an interrupted run, or to see what to do with the model.

        \b
        Examples:
          manyheads quickstart
          manyheads quickstart --direction de-en
          manyheads quickstart --task generate --language zh
        """),
)
@click.option(
    "--task",
    type=_TaskName(),
    default="translate",
    show_default=True,
    help=_("What the model learns."),
)
@click.option(
    "--direction",
    type=click.Choice([f"{a}-{b}" for a in _LANGUAGES for b in _LANGUAGES if a != b]),
    help=_("Source and target language of a translation model. [default: en-zh]"),
)
@click.option(
    "--language",
    type=click.Choice(list(_LANGUAGES)),
    help=_("Language of the other tasks. [default: en]"),
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help=_("Run folder. [default: runs/quickstart…]"),
)
@click.option(
    "--steps",
    type=int,
    help=_("Training steps. [default: about two minutes on two cores]"),
)
@click.option(
    "--overwrite",
    is_flag=True,
    help=_("Delete the run folder's content and start over."),
)
@click.option("--plain", is_flag=True, help=_("Print plain lines instead of a live progress bar."))
def quickstart(
    task: str,
    direction: str | None,
    language: str | None,
    output: Path | None,
    steps: int | None,
    overwrite: bool,
    plain: bool,
) -> None:
    """Train, score and try a model on the built-in corpus."""
    from manyheads.cli.train import run_with_progress
    from manyheads.cores import count_cores
    from manyheads.run import Recipe, RunFolder, check_same_recipe, delete_run

    job = _quickstarts()[task]
    corpus = _corpus(job, direction, language)
    folder = output or Path("runs") / _folder(job, corpus)
    command = _command(job, corpus, output)
    recipe = Recipe.from_table(job.make_recipe(corpus, steps))
    if overwrite:
        delete_run(folder)
    check_same_recipe(recipe, folder)
    bundle = RunFolder(folder).bundle
    if bundle.exists() and not _wants_more_steps(bundle, steps):
        _show_existing(bundle, job, corpus, command)
        return
    languages = " → ".join(_LANGUAGES[name] for name in corpus.split("-"))
    machine = _n("built-in corpus · 1 core", "built-in corpus · {n} cores", count_cores())
    resume_command = command if steps is None else f"{command} --steps {steps}"
    title = f"quickstart · {job.title} · {languages} · {machine}"
    finished = run_with_progress(recipe, folder, resume_command, title=title, plain=plain)
    if job.demo:
        _show_demo(finished.bundle, job, corpus, plain=plain)
    examples = _choose_examples(finished.bundle, job, corpus)
    _write_lens(finished.bundle, examples)
    _show_next(finished.bundle, job, corpus, examples)


@dataclass(frozen=True)
class _Examples:
    """Examples for the model at hand: trained weights differ between processors, so none holds for every model."""

    text: str  # to predict
    ablation: "VisibleAblation | None"
    is_searched: bool  # False: the model samples its answers, which differ with and without a head


def _choose_examples(bundle: Path, job: "Quickstart", corpus: str) -> _Examples:
    """Return a text that is answered without a warning, and a head that matters visibly."""
    from manyheads.bundle import load
    from manyheads.lens.traces.examples import sample_examples
    from manyheads.lens.visible_ablation import find_visible_ablation, texts_without_remarks

    own = job.examples[corpus.split("-")[0]]
    if job.takes_prompt:
        return _Examples(own[0], None, is_searched=False)
    loaded = load(bundle)
    held_out = [example.texts[0].text for example in sample_examples(loaded, _N_TRIED)]
    texts = texts_without_remarks(loaded, [*own, *held_out])
    return _Examples(texts[0] if texts else own[0], find_visible_ablation(loaded), is_searched=True)


def _write_lens(bundle: Path, examples: _Examples) -> None:
    """Write the lens page of the example texts beside the report; it opens with the head of the example off."""
    from manyheads.cli.lens import open_session, write_page
    from manyheads.run import RunFolder

    found = examples.ablation
    texts = tuple(dict.fromkeys([*([] if found is None else [found.text]), examples.text]))
    off = [] if found is None else [str(found.head)]
    click.echo()
    write_page(open_session(bundle), texts, RunFolder(bundle.parent).lens_file, n_texts=_SURVEY, off=off)


def _corpus(job: "Quickstart", direction: str | None, language: str | None) -> str:
    """Return the language, or the two languages, of the built-in corpus."""
    if job.n_languages == 2:
        if language:
            raise click.UsageError(
                _("--language does not apply to --task {name}. Use --direction, as in en-zh.", name=job.name)
            )
        return direction or job.default_corpus
    if direction:
        raise click.UsageError(
            _("--direction does not apply to --task {name}. Use --language, as in zh.", name=job.name)
        )
    return language or job.default_corpus


def _folder(job: "Quickstart", corpus: str) -> str:
    task = [] if job.name == "translate" else [job.name]
    return "-".join(["quickstart", *task, *([] if corpus == job.default_corpus else [corpus])])


def _command(job: "Quickstart", corpus: str, output: Path | None) -> str:
    """Return the command that runs the same quickstart again."""
    import shlex

    words = [program_name(), "quickstart"]
    if job.name != "translate":
        words += ["--task", job.name]
    if corpus != job.default_corpus:
        words += ["--language" if job.n_languages == 1 else "--direction", corpus]
    return shlex.join([*words, *(["-o", str(output)] if output else [])])


def _show_demo(bundle: Path, job: "Quickstart", corpus: str, *, plain: bool) -> None:
    from manyheads.bundle import load
    from manyheads.cli.rendering.progress import make_console

    assert job.demo is not None  # checked by the caller
    demo = job.demo(load(bundle).predictions, corpus)
    console = make_console(plain=plain)
    console.print(f"\n{demo.title}", style="bold")
    for emphasis, rest in demo.lines:
        if emphasis:
            console.print(f"  {emphasis}", style="bold", markup=False, end="" if rest else "\n")
        if rest:
            console.print(rest if emphasis else f"  {rest}", markup=False)


def _vocabulary_rows(loaded: "Bundle", job: "Quickstart", corpus: str) -> list[tuple[str, str]]:
    """Return rows that state the closed vocabulary of the model, with texts that lie in it."""
    language = corpus.split("-")[0]
    n_words = None if loaded.seen_words is None else len(loaded.seen_words)
    if language == "zh" and n_words is None:
        statement = _("only the characters of the built-in corpus, in texts such as")
    elif language == "zh":
        statement = _("only the {n:,} characters of the built-in corpus, in texts such as", n=n_words)
    elif n_words is None:
        statement = _("only the words of the built-in corpus, in texts such as")
    else:
        statement = _("only the {n:,} words of the built-in corpus, in texts such as", n=n_words)
    return [
        (_("It knows:"), statement),
        *(("", example) for example in job.examples[language]),
    ]


def _page_rows(bundle: Path) -> list[tuple[str, str]]:
    """Return rows that name the pages of the run, as far as they exist."""
    from manyheads.run import RunFolder

    folder = RunFolder(bundle.parent)
    pages = (
        (folder.report_file, _("curves, samples, scores")),
        (folder.lens_file, _("every head; switch heads off")),
    )
    rows = [_("{file}   ({content})", file=file, content=content) for file, content in pages if file.exists()]
    return [(_("Open:") if not number else "", row) for number, row in enumerate(rows)]


def _example_rows(bundle: Path, job: "Quickstart", examples: _Examples) -> list[tuple[str, str]]:
    """Return rows with the command to predict, and what changes without a head; a command takes two lines."""
    from manyheads.cli.rendering.head_results import example_rows, shell_word

    text, predict = shell_word(examples.text), f"{program_name()} predict {bundle}"
    command = (predict, f"--prompt {text}") if job.takes_prompt else (f"echo {text}", f"| {predict}")
    rows = [(_("Try it:"), f"{command[0]} \\"), ("", f"  {command[1]}")]
    return [*rows, *(example_rows(bundle, examples.ablation) if examples.is_searched else [])]


def _show_next(bundle: Path, job: "Quickstart", corpus: str, examples: _Examples) -> None:
    from manyheads.bundle import load
    from manyheads.cli.train import echo_table

    reverse = "-".join(reversed(corpus.split("-")))
    other = f"--direction {reverse}" if job.n_languages == 2 else f"--language {'en' if corpus == 'zh' else 'zh'}"
    task = "" if job.name == "translate" else f"--task {job.name} "
    loaded = load(bundle)
    content = _("(copy this folder anywhere)")
    click.echo()
    echo_table(
        [
            (_("Your model:"), f"{bundle}   {content}"),
            *_page_rows(bundle),
            *_vocabulary_rows(loaded, job, corpus),
            *_example_rows(bundle, job, examples),
            (_("Try next:"), f"{program_name()} lens {bundle}"),
            ("", f"{program_name()} evaluate {bundle}"),
            ("", f"{program_name()} heads show {bundle}"),
            ("", f"{program_name()} quickstart {task}{other}"),
            (_("Your own text:"), f"{program_name()} init {job.own_data}"),
        ]
    )


def _wants_more_steps(bundle: Path, steps: int | None) -> bool:
    from manyheads.bundle import load

    return steps is not None and steps > load(bundle).recipe["train"]["steps"]


def _show_existing(bundle: Path, job: "Quickstart", corpus: str, command: str) -> None:
    """Show the scores of the trained model and what to do with it."""
    from manyheads.bundle import load
    from manyheads.cli.rendering.progress import make_console
    from manyheads.cli.rendering.scorecard import show_scores
    from manyheads.cli.train import echo_table

    loaded = load(bundle)
    click.echo(_("The model is already trained:  {bundle}", bundle=bundle) + "\n")
    show_scores(loaded.scores, make_console(plain=False))
    click.echo()
    echo_table(
        [
            *_page_rows(bundle),
            *_vocabulary_rows(loaded, job, corpus),
            *_example_rows(bundle, job, _choose_examples(bundle, job, corpus)),
            (_("Train further:"), f"{command} --steps {2 * loaded.recipe['train']['steps']}"),
            (_("Start over:"), f"{command} --overwrite"),
        ]
    )
