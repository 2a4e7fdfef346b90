"""`manyheads quickstart`: a whole job on the built-in corpus."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from manyheads.cli.program import program_name
from manyheads.cli.quickstart_recipes import STEPS, quickstart_recipe

if TYPE_CHECKING:
    from manyheads.bundle import Bundle

_NAMES = {"en": "English", "zh": "中文", "de": "Deutsch"}
_TASKS = {
    "translate": "translate · 翻译",
    "classify": "classify opinions · 观点分类",
    "tag": "tag entities, tell intents · 实体标注与意图识别",
    "generate": "write stories · 续写故事",
}
_OWN_TEXT = {
    "translate": "init YOUR.en YOUR.zh",
    "classify": "init YOUR.csv          (a column text, a column label)",
    "tag": "init YOUR.conll        (a word and its tag a line, an empty line after a sentence)",
    "generate": "init YOUR-FOLDER       (of .txt files)",
}
_SENTENCE = {"en": "Two cats are sleeping.", "zh": "两只猫正在睡觉。", "de": "Zwei Katzen schlafen."}


@click.command(short_help="Train a small model on the built-in corpus in minutes. 几分钟训练一个小模型。")
@click.option(
    "--task",
    type=click.Choice(list(_TASKS)),
    default="translate",
    show_default=True,
    help="What the model shall learn.",
)
@click.option(
    "--direction",
    type=click.Choice([f"{a}-{b}" for a in _NAMES for b in _NAMES if a != b]),
    help="Of a translator: from which language to which. [default: en-zh]",
)
@click.option("--language", type=click.Choice(list(_NAMES)), help="Of the other tasks. [default: en]")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Run folder. [default: runs/quickstart…]")
@click.option("--steps", type=int, help="How long to train. [default: about two minutes on two cores]")
@click.option("--overwrite", is_flag=True, help="Throw away what is in the run folder and start over.")
@click.option("--plain", is_flag=True, help="Plain lines instead of a live bar, for logs.")
def quickstart(
    task: str,
    direction: str | None,
    language: str | None,
    output: Path | None,
    steps: int | None,
    overwrite: bool,
    plain: bool,
) -> None:
    """Train a model on the built-in corpus: text, tokenizer, training, score, bundle. 在内置语料上完整走一遍。

    Nothing is downloaded. Run again, and it goes on where it stopped, or tells you what to do with the model.

    \b
    Example · 例:
      manyheads quickstart
      manyheads quickstart --direction de-en
      manyheads quickstart --task generate --language zh
    """
    import os

    from manyheads.bundle import load
    from manyheads.cli.train import run_with_progress
    from manyheads.run import Recipe, check_same_recipe, delete_run

    builtin = _builtin(task, direction, language)
    folder = output or Path("runs") / _folder(task, builtin)
    command = _command(task, builtin, output)
    recipe = Recipe.from_table(quickstart_recipe(task, builtin, STEPS[task] if steps is None else steps))
    if overwrite:
        delete_run(folder)
    check_same_recipe(recipe, folder)
    bundle = folder / "bundle"
    if bundle.exists() and not _offer(bundle, task, builtin, command, steps):
        return
    languages = " → ".join(_NAMES[name] for name in builtin.split("-"))
    title = f"quickstart · {_TASKS[task]} · {languages} · built-in corpus · {os.cpu_count()} cores"
    resume_command = command if steps is None else f"{command} --steps {steps}"
    finished = run_with_progress(recipe, folder, resume_command, title=title, plain=plain)
    if task != "translate":
        _show(load(finished.bundle), task, builtin, plain=plain)
    _show_next(finished.bundle, task, builtin)


def _builtin(task: str, direction: str | None, language: str | None) -> str:
    """The language, or the two, of the built-in corpus."""
    if task == "translate":
        if language:
            raise click.UsageError("--language is for the other tasks. Of a translator, say: --direction en-zh.")
        return direction or "en-zh"
    if direction:
        raise click.UsageError(f"--direction is for a translator. With --task {task}, say: --language zh.")
    return language or "en"


def _folder(task: str, builtin: str) -> str:
    parts = ["quickstart", *([task] if task != "translate" else []), *([builtin] if not _is_usual(builtin) else [])]
    return "-".join(parts)


def _is_usual(builtin: str) -> bool:
    return builtin in ("en-zh", "en")


def _command(task: str, builtin: str, output: Path | None) -> str:
    """The command that would do the same again."""
    import shlex

    words = [program_name(), "quickstart"]
    if task != "translate":
        words += ["--task", task]
    if not _is_usual(builtin):
        words += ["--language" if "-" not in builtin else "--direction", builtin]
    return shlex.join([*words, *(["-o", str(output)] if output else [])])


def _show(bundle: "Bundle", task: str, language: str, *, plain: bool) -> None:
    """What the model answers."""
    from manyheads.cli.progress import make_console
    from manyheads.cli.quickstart_demos import show_entities, show_opinions, show_stories

    show = {"classify": show_opinions, "tag": show_entities, "generate": show_stories}[task]
    show(bundle, language, make_console(plain=plain))


def _try(bundle: Path, task: str, builtin: str) -> str:
    """A command that asks the model something."""
    from manyheads.cli.quickstart_demos import OPINIONS, PROMPTS, SENTENCES

    if task == "generate":
        return f'{program_name()} predict {bundle} --prompt "{PROMPTS[builtin]}"'
    texts = {"classify": OPINIONS, "tag": SENTENCES}
    text = texts[task][builtin][1] if task in texts else _SENTENCE[builtin[:2]]
    return f'echo "{text}" | {program_name()} predict {bundle}'


def _show_next(bundle: Path, task: str, builtin: str) -> None:
    language = "en" if builtin == "zh" else "zh"
    other = "--direction de-en" if task == "translate" else f"--task {task} --language {language}"
    click.echo(f"""
Your model · 你的模型:  {bundle}     (weights, tokenizer, recipe, scores: copy the folder anywhere)
Try next · 接下来:      {_try(bundle, task, builtin)}
                        {program_name()} evaluate {bundle}
                        {program_name()} heads {bundle}
                        {program_name()} quickstart {other}
Your own text · 用自己的文本:  {program_name()} {_OWN_TEXT[task]}""")


def _offer(bundle: Path, task: str, builtin: str, command: str, steps: int | None) -> bool:
    """Whether to train a model further that is there already; if not, say how good it is and what can be done."""
    from manyheads.bundle import load
    from manyheads.cli.progress import make_console
    from manyheads.cli.scorecard import show_scores

    loaded = load(bundle)
    trained = loaded.recipe["train"]["steps"]
    if steps is not None and steps > trained:
        return True
    click.echo(f"The model is there already · 模型已经训练好了:  {bundle}\n")
    show_scores(loaded.scores, make_console(plain=False))
    click.echo(f"""
Look at it · 看看它:     {_try(bundle, task, builtin)}
Continue · 继续训练:     {command} --steps {2 * trained}
Start over · 重新开始:   {command} --overwrite""")
    return False
