"""`manyheads bench`: how fast this machine trains and translates."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from manyheads.cli.rendering.output import padded, program_name, right_aligned
from manyheads.messages import _, _n

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import Console

    from manyheads.bench import DecodingSpeed, Event, MatmulSpeed, TimeEstimates, TrainingSpeed
    from manyheads.proposals.cost_estimate import Machine

_BUSY = 1.3  # times as long as on a free machine


@click.command(
    short_help=_("Measure how fast this machine trains and translates."),
    help=_("""Measure this machine for about a minute and estimate training and translation times.

        Without BUNDLE: matrix multiplication (SGEMM), training, and every available engine, with untrained models of
        the presets tiny and base on sentences of the built-in corpus. With BUNDLE: the speed of that bundle, text to
        text. Times are wall-clock times with all threads, next to whatever else is running.

        \b
        Example:
          manyheads bench
          manyheads bench runs/mail/bundle --lines letters.en
          manyheads bench --quick --json
        """),
)
@click.argument("bundle", required=False, type=click.Path(path_type=Path))
@click.option(
    "--lines",
    type=click.Path(path_type=Path),
    help=_("File of texts for BUNDLE. [default: the validation set of its recipe]"),
)
@click.option(
    "--quick",
    is_flag=True,
    help=_("The tiny model only: seconds instead of a minute."),
)
@click.option("--json", "as_json", is_flag=True, help=_("Write all measurements as JSON."))
def bench(bundle: Path | None, lines: Path | None, quick: bool, as_json: bool) -> None:
    """Measure this machine, or a bundle on it."""
    from manyheads.bench import SIZES, measure_bundle, measure_machine, read_texts
    from manyheads.proposals.cost_estimate import this_machine

    if bundle is None and lines is not None:
        raise click.UsageError(_("--lines needs a bundle: manyheads bench BUNDLE --lines FILE."))
    if bundle is not None and quick:
        raise click.UsageError(_("--quick measures the machine: leave out BUNDLE."))
    machine = this_machine("cpu")
    if bundle is None:
        events: Iterable[Event] = measure_machine(["tiny"] if quick else list(SIZES))
    else:
        from manyheads.bundle import load

        loaded = load(bundle)
        events = measure_bundle(loaded, read_texts(loaded, lines))
    measurements = _collect(events, machine, is_silent=as_json)
    if as_json:
        _print_json(machine, measurements)
    else:
        _show_estimates(measurements.estimates, measurements.example)
        if bundle is None:
            command = _("{program} init YOUR-FILES", program=program_name())
            click.echo(_("\nTry next:   {command}   (an estimate for your own text)", command=command))


class _Measurements:
    """The measurements so far."""

    def __init__(self) -> None:
        self.matmul: Any = None
        self.training: list[Any] = []
        self.decoding: list[DecodingSpeed] = []
        self.missing: list[Any] = []
        self.lengths = (0.0, 0.0)
        self.example = ""

    @property
    def estimates(self) -> "TimeEstimates":
        from manyheads.bench import estimate_times

        return estimate_times(self.training, self.decoding, self.lengths[1])


def _collect(events: "Iterable[Event]", machine: "Machine", *, is_silent: bool) -> _Measurements:
    """Collect the measurements, and print each as it arrives."""
    from rich.console import Console

    from manyheads.bench import DecodingSpeed, MatmulSpeed, Measuring, MissingEngine, Sentences, TrainingSpeed
    from manyheads.cli.rendering.progress import make_console

    measurements = _Measurements()
    console = Console(quiet=True) if is_silent else make_console(plain=False)
    _show_machine(machine, console)
    model = ""
    with Console(stderr=True).status("") as status:
        for event in events:
            status.stop()
            if isinstance(event, Measuring):
                status.update(f"[dim]{event.what} …")
            elif isinstance(event, Sentences):
                measurements.lengths, measurements.example = event.mean_lengths, event.example
            elif isinstance(event, MatmulSpeed):
                measurements.matmul = event
                console.print(
                    f"  {'SGEMM':<13}{event.gflop_per_second:,.0f} GFLOP/s"
                    + _(" for matrices of {size:,}", size=event.size)
                )
                _warn_if_busy(event, console)
            elif isinstance(event, TrainingSpeed):
                measurements.training.append(event)
                _show_training(event, console)
            elif isinstance(event, DecodingSpeed):
                measurements.decoding.append(event)
                if measurements.matmul is None and not model:
                    _show_load(machine, console)
                if event.model != model:
                    heading = padded(_("Inference   {model}", model=event.model), 22)
                    latency, throughput = right_aligned(_("one sentence"), 17), right_aligned(_("batch"), 20)
                    console.print(f"\n{heading}{latency}{throughput}")
                model = event.model
                _show_decoding(event, console)
            elif isinstance(event, MissingEngine):
                measurements.missing.append(event)
                console.print(f"  {event.engine:<13}{event.reason}", style="yellow", markup=False)
            if isinstance(event, Measuring):
                status.start()
    return measurements


def _show_machine(machine: "Machine", console: "Console") -> None:
    cores, threads = _n("1 core", "{n} cores", machine.n_cores), _n("1 thread", "{n} threads", machine.n_threads)
    console.print(_("This machine   {cores}, {threads}", cores=cores, threads=threads), style="bold")


def _show_training(event: "TrainingSpeed", console: "Console") -> None:
    heading = _(
        "Training   {model}, {millions:.1f} M parameters, vocabulary {vocab_size:,}",
        model=event.model,
        millions=event.n_parameters / 1e6,
        vocab_size=event.vocab_size,
    )
    speed = _(
        "{tokens_per_second:,.0f} tokens/s, {utilization:.0%} of SGEMM",
        tokens_per_second=event.tokens_per_second,
        utilization=event.utilization,
    )
    console.print(f"\n{heading}\n  {'':<13}{speed}")


def _show_load(machine: "Machine", console: "Console") -> None:
    if machine.is_busy:
        console.print(
            _("  The machine is busy (load {load:.1f}); an idle machine is faster.", load=machine.load),
            style="yellow",
        )


def _warn_if_busy(products: "MatmulSpeed", console: "Console") -> None:
    if products.slowdown > _BUSY:
        times = f"{products.slowdown:.1f}"
        console.print(
            _("  The machine is busy: the times below are about {times} × those of an idle machine.", times=times),
            style="yellow",
        )


def _show_decoding(event: "DecodingSpeed", console: "Console") -> None:
    mark = _("   ← default") if event.is_default else ""
    unit = _("sentences/s")
    console.print(
        f"  {event.engine:<13}{event.method:<10}{event.latency_ms:>10,.1f} ms"
        f"{event.sentences_per_second:>14,.1f} {unit}{mark}",
        markup=False,
    )


def _show_estimates(estimates: "TimeEstimates", example: str) -> None:
    click.echo(_("\nWhat to expect"))
    for sentence in _sentences(estimates):
        click.echo(f"  {sentence}")
    if example:
        click.echo(_("  These are for sentences such as “{example}”; longer ones take longer.", example=example))


def _sentences(estimates: "TimeEstimates") -> "Iterator[str]":
    for training in estimates.training:
        yield _(
            "Training on {n_pairs:,} pairs takes about {duration} ({model} model, {n_epochs:.0f} epochs).",
            n_pairs=training.n_pairs,
            duration=_duration(training.seconds),
            model=training.model,
            n_epochs=training.n_epochs,
        )
    for translating in estimates.translating:
        is_bundle = translating.model == "bundle"
        name = _("bundle") if is_bundle else _("{model} model", model=translating.model)
        yield _(
            "A file of {n_lines:,} lines takes {duration}, one sentence {milliseconds} ms ({setup}).",
            n_lines=translating.n_lines,
            duration=_duration(translating.seconds),
            milliseconds=_milliseconds(translating.latency_ms),
            setup=", ".join(filter(None, (name, translating.engine, translating.method))),
        )


def _milliseconds(number: float) -> str:
    return f"{number:,.1f}" if number < 10 else f"{number:,.0f}"


def _duration(seconds: float) -> str:
    """Return a time in the largest unit that keeps it readable."""
    if seconds < 120:
        return _("{value} s", value=_short(seconds))
    if seconds < 5400:
        return _("{value} min", value=_short(seconds / 60))
    if seconds < 172_800:
        return _("{value} h", value=_short(seconds / 3600))
    return _("{days:,.1f} days", days=seconds / 86_400)


def _short(value: float) -> str:
    return f"{max(0.1, value):,.{1 if value < 10 else 0}f}"


def _print_json(machine: "Machine", measurements: _Measurements) -> None:
    import json
    from dataclasses import asdict

    payload: dict[str, Any] = {"machine": asdict(machine)}
    if measurements.matmul is not None:
        payload["matmul"] = {**asdict(measurements.matmul), "gflop_per_second": measurements.matmul.gflop_per_second}
        payload["sentences"] = {"example": measurements.example, "mean_lengths": measurements.lengths}
        payload["training"] = [
            {
                **asdict(speed),
                "tokens_per_second": speed.tokens_per_second,
                "utilization": speed.utilization,
            }
            for speed in measurements.training
        ]
    payload["decoding"] = [
        {
            **asdict(speed),
            "latency_ms": speed.latency_ms,
            "sentences_per_second": speed.sentences_per_second,
        }
        for speed in measurements.decoding
    ]
    payload["missing"] = {engine.engine: engine.reason for engine in measurements.missing}
    payload["estimates"] = asdict(measurements.estimates)
    json.dump(payload, sys.stdout, ensure_ascii=False, indent=2)
    click.echo()
