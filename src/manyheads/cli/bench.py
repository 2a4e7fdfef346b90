"""`manyheads bench`: how fast this machine trains and translates, and what that means for its user."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from manyheads.cli.program import program_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console

    from manyheads.bench import DecodingSpeed, Event, MatmulSpeed, TimeEstimates
    from manyheads.init.cost_estimate import Machine

_BUSY = 1.3  # times as long as on a free machine


@click.command(short_help="How fast training and translating are on this machine. 测试本机速度。")
@click.argument("bundle", required=False, type=click.Path(path_type=Path))
@click.option("--lines", type=click.Path(path_type=Path), help="Texts for BUNDLE. [default: its recipe's valid set]")
@click.option("--quick", is_flag=True, help="The tiny model only: seconds instead of a minute.")
@click.option("--json", "as_json", is_flag=True, help="Everything that was measured, as JSON.")
def bench(bundle: Path | None, lines: Path | None, quick: bool, as_json: bool) -> None:
    """Measure this machine for about a minute, and say what to expect of it. 用约一分钟测试本机，并说明意味着什么。

    Without BUNDLE: matrix products (SGEMM), training, and every engine that is installed, by untrained models of the
    presets tiny and base on sentences of the built-in corpus. With BUNDLE: that bundle's own answers, text to text.
    Seconds are those of the clock, with all threads, beside whatever else runs now.

    \b
    Example · 例:
      manyheads bench
      manyheads bench runs/mail/bundle --lines letters.en
      manyheads bench --quick --json
    """
    from manyheads.bench import SIZES, measure_bundle, measure_machine, read_texts
    from manyheads.init.cost_estimate import this_machine

    if bundle is None and lines is not None:
        raise click.UsageError("--lines is for a bundle: manyheads bench BUNDLE --lines FILE.")
    if bundle is not None and quick:
        raise click.UsageError("--quick is for the machine: leave out BUNDLE.")
    machine = this_machine("cpu")
    if bundle is None:
        events: Iterable[Event] = measure_machine(["tiny"] if quick else list(SIZES))
    else:
        from manyheads.bundle import load

        loaded = load(bundle)
        events = measure_bundle(loaded, read_texts(loaded, lines))
    found = _collect(events, machine, is_silent=as_json)
    if as_json:
        _print_json(machine, found)
    else:
        _show_estimates(found.estimates, found.example)
        if bundle is None:
            click.echo(f"\nTry next · 接下来:   {program_name()} init YOUR-FILES   (your own text 估算你自己的数据)")


class _Measurements:
    """What has been measured by now."""

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
    """Gather what is found, and show it as it comes."""
    from rich.console import Console

    from manyheads.bench import DecodingSpeed, MatmulSpeed, MissingEngine, Sentences, Stage, TrainingSpeed
    from manyheads.cli.progress import make_console

    found = _Measurements()
    console = Console(quiet=True) if is_silent else make_console(plain=False)
    _show_machine(machine, console)
    model = ""
    with Console(stderr=True).status("") as status:
        for event in events:
            status.stop()
            if isinstance(event, Stage):
                status.update(f"[dim]{event.what} …")
            elif isinstance(event, Sentences):
                found.lengths, found.example = event.mean_lengths, event.example
            elif isinstance(event, MatmulSpeed):
                found.matmul = event
                console.print(
                    f"  {'products':<13}{event.gflop_per_second:,.0f} GFLOP/s in matrices of {event.size:,} (SGEMM)"
                )
                _warn_if_busy(event, console)
            elif isinstance(event, TrainingSpeed):
                found.training.append(event)
                console.print(
                    f"\nTraining · 训练   {event.model}, {event.n_parameters / 1e6:.1f} M parameters, "
                    f"{event.vocab_size:,} tokens\n  {'':<13}{event.tokens_per_second:,.0f} tokens/s, "
                    f"{event.utilization:.0%} of what the products reach"
                )
            elif isinstance(event, DecodingSpeed):
                found.decoding.append(event)
                if found.matmul is None and not model:
                    _show_load(machine, console)
                if event.model != model:
                    console.print(f"\nAnswering · 推理   {event.model:<10}one alone{'many at once':>26}")
                model = event.model
                _show_decoding(event, console)
            elif isinstance(event, MissingEngine):
                found.missing.append(event)
                console.print(f"  {event.engine:<13}{event.reason}", style="yellow", markup=False)
            if isinstance(event, Stage):
                status.start()
    return found


def _show_machine(machine: "Machine", console: "Console") -> None:
    console.print(
        f"This machine · 本机   {_count(machine.n_cores, 'core')}, {_count(machine.n_threads, 'thread')}", style="bold"
    )


def _show_load(machine: "Machine", console: "Console") -> None:
    if machine.is_busy:
        console.print(
            f"  The machine is busy (load {machine.load:.1f}); when it is free all is faster. 机器正忙，空闲时会更快。",
            style="yellow",
        )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _warn_if_busy(products: "MatmulSpeed", console: "Console") -> None:
    if products.slowdown > _BUSY:
        times = f"{products.slowdown:.1f}"
        console.print(
            f"  The machine is busy: all that follows takes about {times} times as long as on a free one. "
            f"机器正忙，以下耗时约为空闲时的 {times} 倍。",
            style="yellow",
        )


def _show_decoding(event: "DecodingSpeed", console: "Console") -> None:
    mark = "   ← default · 默认" if event.is_default else ""
    console.print(
        f"  {event.engine:<13}{event.method:<10}{event.latency_ms:>10,.1f} ms"
        f"{event.sentences_per_second:>14,.1f} sentences/s{mark}",
        markup=False,
    )


def _show_estimates(estimates: "TimeEstimates", example: str) -> None:
    click.echo("\nWhat it means for you · 对你意味着什么")
    for english, chinese in _sentences(estimates):
        click.echo(f"  {english}\n      {chinese}")
    if example:
        click.echo(f"  Sentences are like this one; time grows with their length. 句子长度如：“{example}”")


def _sentences(estimates: "TimeEstimates") -> "Sequence[tuple[str, str]]":
    told = [
        (
            f"{one.n_pairs:,} pairs train in about {_duration(one.seconds)} ({one.model} model, "
            f"{one.n_epochs:.0f} epochs).",
            f"{one.n_pairs:,} 个句对训练约需 {_duration(one.seconds, '秒', '分钟', '小时', '天')}"
            f"（{one.model} 模型，{one.n_epochs:.0f} 轮）。",
        )
        for one in estimates.training
    ]
    for two in estimates.translating:
        name = "bundle" if two.model == "bundle" else f"{two.model} model"
        how = ", ".join(word for word in (name, two.engine, two.method) if word)
        told.append(
            (
                f"A file of {two.n_lines:,} lines takes {_duration(two.seconds)}, one sentence "
                f"{_milliseconds(two.latency_ms)} ms ({how}).",
                f"{two.n_lines:,} 行的文件约需 {_duration(two.seconds, '秒', '分钟', '小时', '天')}，"
                f"一句 {_milliseconds(two.latency_ms)} 毫秒（{how}）。",
            )
        )
    return told


def _milliseconds(number: float) -> str:
    return f"{number:,.1f}" if number < 10 else f"{number:,.0f}"


def _duration(seconds: float, second: str = "s", minute: str = "min", hour: str = "h", day: str = "days") -> str:
    """In the unit in which it is neither huge nor nothing."""
    for limit, scale, unit in ((120, 1, second), (5400, 60, minute), (172_800, 3600, hour)):
        if seconds < limit:
            return f"{max(0.1, seconds / scale):,.{1 if seconds / scale < 10 else 0}f} {unit}"
    return f"{seconds / 86_400:,.1f} {day}"


def _print_json(machine: "Machine", found: _Measurements) -> None:
    import json
    from dataclasses import asdict

    payload: dict[str, Any] = {"machine": asdict(machine)}
    if found.matmul is not None:
        payload["matmul"] = {**asdict(found.matmul), "gflop_per_second": found.matmul.gflop_per_second}
        payload["sentences"] = {"example": found.example, "mean_lengths": found.lengths}
        payload["training"] = [
            {
                **asdict(speed),
                "tokens_per_second": speed.tokens_per_second,
                "utilization": speed.utilization,
            }
            for speed in found.training
        ]
    payload["decoding"] = [
        {
            **asdict(speed),
            "latency_ms": speed.latency_ms,
            "sentences_per_second": speed.sentences_per_second,
        }
        for speed in found.decoding
    ]
    payload["missing"] = {one.engine: one.reason for one in found.missing}
    payload["estimates"] = asdict(found.estimates)
    json.dump(payload, sys.stdout, ensure_ascii=False, indent=2)
    click.echo()
