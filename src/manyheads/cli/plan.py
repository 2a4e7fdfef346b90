"""`manyheads plan`: what a recipe costs, before anything is prepared."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from manyheads.cli.rendering.output import padded, program_name, right_aligned, wrap_cells
from manyheads.messages import Message, _, _n

if TYPE_CHECKING:
    from manyheads.plan.run_plan import RunPlan
    from manyheads.run import Recipe

_WIDTH = 80
_LABEL = 16
_GB = 1e9
_NAMES = {
    "embeddings": Message("embeddings"),
    "positions": Message("positions"),
    "attention": Message("attention"),
    "scores": Message("scores"),
    "feed-forward": Message("feed-forward"),
    "norms": Message("norms"),
    "projections": Message("projections"),
    "softmax layer": Message("softmax layer"),
    "weights": Message("weights"),
    "gradients": Message("gradients"),
    "gathered": Message("gathered"),
    "activations": Message("activations"),
    "program": Message("program"),
    "preparation": Message("preparation"),
    "training": Message("training"),
    "validation": Message("validations"),
    "checkpoints": Message("checkpoints"),
    "scoring": Message("scoring"),
}


class _Kind(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.3
    """The name of an accelerator. The table is imported only when the names are needed."""

    name = "kind"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        from manyheads.plan.run_plan import ACCELERATORS

        return f"[{'|'.join(ACCELERATORS)}]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from manyheads.plan.run_plan import ACCELERATORS

        if str(value).lower() not in ACCELERATORS:
            choices = ", ".join(ACCELERATORS)
            self.fail(_("{value!r} is not one of {choices}.", value=value, choices=choices), param, ctx)
        return str(value).lower()


@click.command(
    short_help=_("Estimate the size, memory, time and price of a run."),
    help=_("""Estimate what a recipe costs: parameters, FLOP, memory per device, time and price.

        Nothing is prepared or written. Without options, a few updates of the recipe's model are trained to measure this
        machine. With --gpus, published peak rates and an assumed utilization are used instead, and no text is read.

        \b
        Example:
          manyheads plan recipe.toml
          manyheads plan recipe.toml train.steps=20000 --cpus 4
          manyheads plan recipes/wmt14-base.toml --gpus 8 --kind a100 --price 2.5
        """),
)
@click.argument("path", metavar="RECIPE|RUN", type=click.Path(path_type=Path))
@click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]…")
@click.option(
    "--gpus",
    type=click.IntRange(1, 100_000),
    help=_("Number of GPUs. Needs --kind."),
)
@click.option("--kind", type=_Kind(), help=_("Kind of GPU. Needs --gpus."))
@click.option(
    "--cpus",
    type=click.IntRange(1, 100_000),
    help=_("Number of processes that train together, each as fast as this one. [default: 1]"),
)
@click.option(
    "--price",
    type=click.FloatRange(min=0, min_open=True),
    help=_("Price of one device for an hour."),
)
@click.option(
    "--utilization",
    type=click.FloatRange(0, 1, min_open=True),
    help=_("Share of a GPU's peak that is reached. [default: 0.3]"),
)
@click.option("--json", "as_json", is_flag=True, help=_("Write the plan as JSON."))
def plan(
    path: Path,
    overrides: tuple[str, ...],
    gpus: int | None,
    kind: str | None,
    cpus: int | None,
    price: float | None,
    utilization: float | None,
    as_json: bool,
) -> None:
    """Estimate what a recipe costs."""
    from manyheads.plan.run_plan import ACCELERATORS, make_plan, try_recipe

    if (gpus is None) != (kind is None):
        raise click.UsageError(_("--gpus and --kind belong together: --gpus 8 --kind a100."))
    if gpus is not None and cpus is not None:
        raise click.UsageError(_("--gpus and --cpus exclude each other. Choose one."))
    if utilization is not None and gpus is None:
        raise click.UsageError(_("--utilization is for --gpus. On CPUs, the speed is measured."))
    recipe, vocab_size = _read(path, overrides)
    trial = None
    if kind is None:
        from rich.console import Console

        # On standard error, so that the plan can be piped; nothing is printed if that is not a terminal.
        with Console(stderr=True).status("[dim]" + _("training a few updates …")):
            trial = try_recipe(recipe, startup=time.process_time())
    made = make_plan(
        recipe,
        trial=trial,
        accelerator=None if kind is None else ACCELERATORS[kind],
        n_devices=gpus or cpus or 1,
        utilization=utilization,
        price=price,
        vocab_size=vocab_size,
    )
    if as_json:
        _print_json(path, made)
    else:
        _show(path, made)


def _read(path: Path, overrides: tuple[str, ...]) -> "tuple[Recipe, int | None]":
    """Read a recipe, or that of a run with the size of its vocabulary."""
    from manyheads.errors import DataError
    from manyheads.run import RunFolder, read_recipe
    from manyheads.text.tokens.tokenizer import Tokenizer

    if not path.exists():
        raise DataError(
            _("{path}: there is no such file or folder. Give a recipe (.toml) or a run's folder.", path=path)
        )
    if not path.is_dir():
        return read_recipe(path, overrides), None
    folder = RunFolder(path)
    if not folder.recipe_file.is_file():
        raise DataError(
            _(
                "{path} is not a run: it has no {file}. Give a recipe (.toml) or a run's folder.",
                path=path,
                file=folder.recipe_file.name,
            )
        )
    recipe = read_recipe(folder.recipe_file, overrides)
    has_tokenizer = folder.tokenizer_file.is_file()
    return recipe, Tokenizer.from_file(folder.tokenizer_file).vocab_size if has_tokenizer else None


def _name(key: str) -> str:
    return str(_NAMES.get(key, key))


def _line(label: str, text: str) -> None:
    """Print a label and a text, which is wrapped and aligned after it."""
    lines = wrap_cells(text, _WIDTH - _LABEL - 2) or [""]
    click.echo(f"  {padded(label + ' ', _LABEL)}{lines[0]}")
    for line in lines[1:]:
        click.echo(f"  {'':<{_LABEL}}{line}")


def _heading(text: str) -> None:
    click.secho(f"\n{text}", bold=True)


def _show(path: Path, made: "RunPlan") -> None:
    from manyheads.plan.run_plan import assumptions

    click.secho(f"{program_name()} plan · {path}", bold=True)
    _show_model(made)
    _show_work(made)
    _show_memory(made)
    _show_time(made)
    _heading(_("Assumed"))
    for sentence in assumptions(made):
        lines = wrap_cells(sentence, _WIDTH - 4)
        click.echo("\n".join([f"  · {lines[0]}", *(f"    {line}" for line in lines[1:])]))


def _show_model(made: "RunPlan") -> None:
    model = made.recipe.model
    _heading(_("Model"))
    parts = "  ".join(f"{_name(name)} {_short(count)}" for name, count in made.parameters.items() if count)
    _line(_("parameters"), f"{made.n_parameters:,}")
    _line("", parts)
    layers = " + ".join(
        str(count)
        for count, exists in (
            (model.n_encoder_layers, model.has_encoder),
            (model.n_decoder_layers, model.has_decoder),
        )
        if exists
    )
    _line(
        _("sizes"),
        _(
            "{shape}, {layers} layers, width {width}, {n_heads} heads, vocabulary {vocab_size:,}",
            shape=model.shape,
            layers=layers,
            width=model.width,
            n_heads=model.n_heads,
            vocab_size=model.vocab_size,
        ),
    )


def _show_work(made: "RunPlan") -> None:
    train, batch = made.recipe.train, made.batch
    _heading(_("Work"))
    counts = [
        f"{round(count):,} {name}"
        for count, name in ((batch.n_source, _("source")), (batch.n_target, _("target")))
        if count
    ]
    times = f" × {train.accumulation_steps}" if train.accumulation_steps > 1 else ""
    _line(
        _("updates"),
        _(
            "{steps:,} updates of {counts} tokens{times}, padding included",
            steps=train.steps,
            counts=" + ".join(counts),
            times=times,
        ),
    )
    for name, flop in made.forward.items():
        if flop:
            _line(_name(name), f"{flop / batch.n_positions:>10.3g}   {_formula(name)}")
    _line(
        _("per token"),
        f"{made.flop_per_token:>10.3g}   " + _("FLOP = 3 × their sum (backward: 2 ×)"),
    )
    _line(
        _("in total"),
        f"{made.total_flop:>10.3g}   " + _("FLOP = FLOP per token × tokens × updates"),
    )
    if made.hardware_flop is not None:
        _line(
            _("capacity"),
            f"{made.hardware_flop:>10.3g}   " + _("FLOP = time × GPUs × peak, as the paper counts"),
        )


def _formula(name: str) -> str:
    return {
        "projections": _("2 W (Q + K + V) + 2 V W per layer"),
        "attention": _("2 (Q + V) per visible key, per layer"),
        "feed-forward": _("2 · 2 W F per layer"),
        "softmax layer": _("2 W · vocabulary per predicted token"),
    }[name]


def _show_memory(made: "RunPlan") -> None:
    from dataclasses import asdict

    sharded, replicated = asdict(made.sharded), asdict(made.replicated)
    is_many = made.n_devices > 1
    _heading(
        _("Memory per device, GB ({precision})", precision=made.precision)
        + (f"{'DDP':>19}{'FSDP':>10}" if is_many else "")
    )
    formulas = {
        "weights": "4 B × P",
        "gradients": "4 B × P",
        "adam": "8 B × P",
        "ema": "4 B × P",
        "gathered": _("embeddings and one layer"),
        "activations": _("see docs/how-to/plan.md"),
        "logits": _("2 blocks of 256 rows"),
        "program": _("Python, PyTorch and text"),
    }
    for name, size in [*replicated.items(), ("", made.replicated.total)]:
        other = made.sharded.total if not name else sharded[name]
        if not size and not other:
            continue
        label = _name(name) if name else _("in total")
        sizes = f"{size / _GB:>8.2f}" + (f"{other / _GB:>10.2f}" if is_many else "")
        _line(label, padded(formulas.get(name, ""), 27) + sizes)
    if made.accelerator is not None:
        limit = made.accelerator.memory_gb
        verdict = _("{limit:g} GB: {verdict}", limit=limit, verdict=_verdict(made, 0.8 * limit))
        _line(made.accelerator.name, verdict)


def _verdict(made: "RunPlan", limit: float) -> str:
    """Whether training fits in so many GB."""
    if made.replicated.total / _GB <= limit:
        return _("fits")
    if made.n_devices > 1 and made.sharded.total / _GB <= limit:
        return _("fits with FSDP only")
    return _("does not fit; a smaller train.batch_tokens needs less")


def _show_time(made: "RunPlan") -> None:
    if made.accelerator:
        _heading(_("Time on {n_devices} × {device}", n_devices=made.n_devices, device=made.accelerator.name))
    else:
        _heading(_("Time on {n_devices} × this machine when idle", n_devices=made.n_devices))
    for name, seconds in made.seconds.items():
        _line(_name(name), right_aligned(_duration(seconds), 10))
    if len(made.seconds) > 1:
        _line(_("in total"), right_aligned(_duration(made.total_seconds), 10))
    n_busy = made.trial.estimate.n_busy if made.trial else 0
    if n_busy:
        load = _n("beside its present load (1 process)", "beside its present load ({n} processes)", n_busy)
        _line(_("now"), f"{right_aligned(_duration(made.total_seconds * made.slowdown), 10)}   {load}")
    if made.cost is not None:
        _line(
            _("price"),
            f"{made.cost:>10,.2f}   = {made.n_devices} × {made.total_seconds / 3600:,.2f} h × {made.price:g}",
        )


def _short(count: float) -> str:
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= limit:
            return f"{count / limit:.1f} {unit}"
    return f"{count:.0f}"


def _duration(seconds: float) -> str:
    if seconds < 120:
        return _("{seconds:,.1f} s", seconds=seconds)
    if seconds < 7200:
        return _("{minutes:,.1f} min", minutes=seconds / 60)
    if seconds < 172_800:
        return _("{hours:,.1f} h", hours=seconds / 3600)
    return _("{days:,.1f} days", days=seconds / 86_400)


def _print_json(path: Path, made: "RunPlan") -> None:
    import json
    from dataclasses import asdict

    from manyheads.plan.run_plan import assumptions

    model, trial = made.recipe.model, made.trial
    payload = {
        "path": str(path),
        "parameters": {**made.parameters, "total": made.n_parameters},
        "vocab_size": model.vocab_size,
        "updates": made.recipe.train.steps,
        "batch": asdict(made.batch),
        "flop": {
            "forward": made.forward,
            "per_token": made.flop_per_token,
            "total": made.total_flop,
            "hardware": made.hardware_flop,
        },
        "memory_bytes": {
            name: {**asdict(memory), "total": memory.total}
            for name, memory in (("replicated", made.replicated), ("sharded", made.sharded))
        },
        "devices": {
            "count": made.n_devices,
            "accelerator": asdict(made.accelerator) if made.accelerator else None,
            "precision": made.precision,
            "utilization": made.utilization,
            "efficiency": made.efficiency,
        },
        "seconds": {**made.seconds, "total": made.total_seconds},
        "slowdown": made.slowdown,
        "cost": made.cost,
        "trial": None
        if trial is None
        else {
            "batch_tokens": trial.batch_tokens,
            "step_seconds": trial.estimate.step_seconds,
            "vocab_size": trial.estimate.vocab_size,
            "data_problem": trial.data_problem or None,
        },
        "assumptions": assumptions(made),
    }
    json.dump(payload, sys.stdout, ensure_ascii=False, indent=2)
    click.echo()
