"""`manyheads quickstart`: the main job on the built-in corpus."""

from pathlib import Path
from typing import Any

import click

from manyheads.cli.program import program

_NAMES = {"en": "English", "zh": "中文", "de": "Deutsch"}
_STEPS = 1000
_TRY = {"en": "Two cats are sleeping.", "zh": "两只猫正在睡觉。", "de": "Zwei Katzen schlafen."}


def quickstart_table(direction: str, steps: int) -> dict[str, Any]:
    """The recipe that trains a small translator in a couple of minutes on two cores."""
    return {
        "data": {"builtin": direction, "builtin_pairs": 100_000},
        "tokenizer": {"kind": "bpe", "vocabulary": 3000},  # enough for most words to be one piece
        "model": {
            "preset": "tiny",
            "n_encoder_layers": 2,
            "n_decoder_layers": 2,
            "norm_place": "pre",
            "dropout": 0.0,  # sentences hardly ever come twice: there is nothing to overfit
            "max_length": 256,
        },
        "train": {
            "steps": steps,
            "batch_tokens": 1500,
            "schedule": "cosine",
            "learning_rate": 4e-3,
            "warmup": 150,
            "validate_every": 100,
            "save_every": 50,
            "average": 3,
        },
    }


@click.command(short_help="Train a translator on the built-in corpus in minutes. 几分钟训练一个翻译模型。")
@click.option(
    "--direction",
    type=click.Choice([f"{a}-{b}" for a in _NAMES for b in _NAMES if a != b]),
    default="en-zh",
    show_default=True,
    help="From which language to which.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Run folder. [default: runs/quickstart]")
@click.option("--steps", type=int, help=f"How long to train. [default: {_STEPS}]")
@click.option("--fresh", is_flag=True, help="Throw away what is in the run folder and start over.")
@click.option("--plain", is_flag=True, help="Plain lines instead of a live bar, for logs.")
def quickstart(direction: str, output: Path | None, steps: int | None, fresh: bool, plain: bool) -> None:
    """Train a translator on the built-in corpus: text, tokenizer, training, score, bundle. 在内置语料上完整走一遍。

    Nothing is downloaded. Run again, and it goes on where it stopped, or tells you what to do with the model.

    \b
    Example · 例:
      manyheads quickstart
      manyheads quickstart --direction de-en
    """
    import os
    import shlex

    from manyheads.cli.train import carry_out
    from manyheads.recipe import Recipe, discard, refuse_other

    folder = output or Path("runs") / ("quickstart" if direction == "en-zh" else f"quickstart-{direction}")
    words = [program(), "quickstart", *(["--direction", direction] if direction != "en-zh" else [])]
    again = shlex.join([*words, *(["-o", str(output)] if output else [])])
    recipe = Recipe.from_table(quickstart_table(direction, _STEPS if steps is None else steps))
    if fresh:
        discard(folder)
    refuse_other(recipe, folder)
    if (folder / "bundle").exists() and not _offer(folder / "bundle", direction, again, steps):
        return
    source, target = direction.split("-")
    title = f"quickstart · {_NAMES[source]} → {_NAMES[target]} · built-in corpus · {os.cpu_count()} cores"
    go_on = again if steps is None else f"{again} --steps {steps}"
    finished = carry_out(recipe, folder, go_on, title=title, plain=plain)
    _show_next(finished.bundle, direction)


def _show_next(bundle: Path, direction: str) -> None:
    click.echo(f"""
Your model · 你的模型:  {bundle}     (weights, tokenizer, recipe, scores: copy the folder anywhere)
Try next · 接下来:      echo "{_TRY[direction[:2]]}" | {program()} predict {bundle}
                        {program()} evaluate {bundle}
                        {program()} quickstart --direction de-en
Your own text · 用自己的文本:  {program()} init YOUR.en YOUR.zh""")


def _offer(bundle: Path, direction: str, again: str, steps: int | None) -> bool:
    """Whether to train a model further that is there already; if not, say how good it is and what can be done."""
    from manyheads.bundle import load
    from manyheads.cli.scorecard import show_scores
    from manyheads.cli.show import make_console

    loaded = load(bundle)
    trained = loaded.recipe["train"]["steps"]
    if steps is not None and steps > trained:
        return True
    click.echo(f"The model is there already · 模型已经训练好了:  {bundle}\n")
    show_scores(loaded.scores, make_console(plain=False))
    click.echo(f"""
Look at it · 看看它:     echo "{_TRY[direction[:2]]}" | {program()} predict {bundle}
Continue · 继续训练:     {again} --steps {2 * trained}
Start over · 重新开始:   {again} --fresh""")
    return False
