"""The progress of a run in a terminal: a live bar with a sample, or plain lines for logs."""

import sys
from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from rich.cells import cell_len
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from manyheads.cli.rendering.scorecard import (
    format_interval,
    has_random_examples,
    show_baselines,
    show_notes,
    show_random_examples,
    show_scores,
)
from manyheads.messages import _, _n
from manyheads.metrics import display_name, format_score, loss_name, rows_name
from manyheads.run import (
    BaselineScored,
    DecodingChosen,
    Event,
    Finished,
    Prepared,
    RecipeChanged,
    Resumed,
    Stage,
    StoppedEarly,
    Validated,
    WeightsChosen,
)
from manyheads.training import Step, TrainSettings

_LABEL_WIDTH = 12  # columns
_N_EXAMPLES = 5  # of each test set, at the end of a run
_N_RECENT = 100  # steps that speed and loss are averaged over


def make_console(*, plain: bool) -> Console:
    """Return a console on standard output; `plain` means no color and no wrapping."""
    return Console(no_color=plain, soft_wrap=plain or not sys.stdout.isatty(), highlight=False)


def show_run(events: Iterator[Event], console: Console, settings: TrainSettings, *, plain: bool) -> Event:
    """Show events as they come, and return the last one, which is how the run ended."""
    is_live = console.is_terminal and not plain
    view: _View = _LiveView(console, settings.steps) if is_live else _PlainView(console, settings.steps)
    status = console.status("")  # prints nothing if the output is not a terminal
    last: Event | None = None
    try:
        for event in events:
            last = event
            status.stop()
            if isinstance(event, Stage):
                view.close()
                status.update(f"[dim]{event.description} …")
                status.start()
            elif isinstance(event, Step):
                view.step(event)
            elif isinstance(event, Validated):
                view.validated(event)
            else:
                if isinstance(event, Prepared):
                    view.throughput.loss_unit = event.loss_unit
                if isinstance(event, StoppedEarly):
                    view.close()
                _show_event(event, console)
                if isinstance(event, Prepared):
                    _show_warmup(settings, console)
    finally:
        status.stop()
        view.close()
    assert last is not None  # a run has at least one event
    return last


def _show_event(event: Event, console: Console) -> None:
    if isinstance(event, Prepared):
        _show_prepared(event, console)
    elif isinstance(event, RecipeChanged):
        for change in event.changes:
            _print_row(console, _("recipe"), _("edited: {change}", change=change))
    elif isinstance(event, Resumed):
        for warning in event.warnings:
            text = _("An older checkpoint is used.")
            _print_row(console, _("damaged"), f"{warning} {text}", style="yellow")
        _print_row(console, _("resuming"), _("from step {step:,}", step=event.step))
    elif isinstance(event, BaselineScored):
        _print_row(console, _("baseline"), f"{event.name}: {format_interval(event.score)}")
    elif isinstance(event, StoppedEarly):
        text = _(
            "at step {step:,}: no better score since step {best_step:,}, whose weights are used",
            step=event.step,
            best_step=event.best_step,
        )
        _print_row(console, _("stopped"), text)
    elif isinstance(event, DecodingChosen):
        _print_row(console, _("decoding"), str(event.choice.describe()))
    elif isinstance(event, WeightsChosen):
        _print_row(console, _("weights"), str(event.describe()))


def _print_row(console: Console, label: str, text: str, style: str | None = None) -> None:
    padding = " " * max(1, _LABEL_WIDTH - cell_len(label))
    start = f"  {label}{padding}"
    if console.soft_wrap:
        console.print(f"{start}{text}", markup=False, style=style)
        return
    row = Table.grid()
    row.add_column(no_wrap=True)
    row.add_column()
    row.add_row(Text(start), Text(text))
    console.print(row, style=style)


def _show_prepared(event: Prepared, console: Console) -> None:
    for warning in event.warnings:
        text = _("It was built again.")
        _print_row(console, _("damaged"), f"{warning} {text}", style="yellow")
    rows = rows_name(event.noun, event.n_rows, event.dropped)
    _print_row(console, _("text"), str(rows))
    if event.n_valid is not None and event.valid_dropped:
        rows = rows_name(event.noun, event.n_valid, event.valid_dropped)
        _print_row(console, _("validation"), str(rows))
    tokens = _("{vocab_size:,} tokens", vocab_size=event.vocab_size)
    _print_row(console, _("tokenizer"), tokens)
    if event.warm_start:
        _print_row(console, _("warm start"), event.warm_start)
    device = event.device
    if event.n_threads and event.device == "cpu":
        device = _n("{device}, 1 thread", "{device}, {n} threads", event.n_threads, device=device)
    if event.n_processes > 1:
        device = f"{event.n_processes} × {device}"
    model = _(
        "{millions:.1f} M parameters on {device} · ready after {seconds:.1f} s",
        millions=event.n_parameters / 1e6,
        device=device,
        seconds=event.seconds,
    )
    _print_row(console, _("model"), model)
    loss = loss_name(event.loss_unit, event.loss_terms)
    _print_row(console, _("loss"), _("mean of the last {n_steps} steps, in {loss}", n_steps=_N_RECENT, loss=loss))
    _show_environment(event, console)


def _show_warmup(settings: TrainSettings, console: Console) -> None:
    """Warn of a warm-up that takes most of the run."""
    from manyheads.doctor.training_checks import check_warmup

    finding = check_warmup(settings)
    if finding.verdict != "good":
        _print_row(console, _("warm-up"), f"{finding.message} {finding.fix}", style="yellow")


def _show_environment(event: Prepared, console: Console) -> None:
    """Warn if the weights may differ in their last bits from those of a run that was never interrupted."""
    if event.has_too_few_cores:
        text = _n(
            "this run started with 1 thread and keeps it, but the machine has fewer cores: it is slower, and the "
            "weights may differ in their last bits.",
            "this run started with {n} threads and keeps them, but the machine has fewer cores: it is slower, and the "
            "weights may differ in their last bits.",
            event.n_threads or 0,
        )
        _print_row(console, _("threads"), text, style="yellow")
    if event.old_torch:
        text = _(
            "this run started with version {old_torch}: the weights may differ in their last bits.",
            old_torch=event.old_torch,
        )
        _print_row(console, "PyTorch", text, style="yellow")


class _Throughput:
    """Speed and mean loss over the last steps."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.loss_unit = "tok"  # what the loss is averaged over

    def add(self, step: Step) -> None:
        self.steps = [*self.steps[1 - _N_RECENT :], step]

    @property
    def speed(self) -> str:
        per_second = sum(step.n_tokens for step in self.steps) / sum(step.seconds for step in self.steps)
        match self.loss_unit:
            case "tok":
                return _("{per_second:,.0f} tok/s", per_second=per_second)
            case "texts":
                return _("{per_second:,.0f} texts/s", per_second=per_second)
            case "words":
                return _("{per_second:,.0f} words/s", per_second=per_second)
            case "masked":
                return _("{per_second:,.0f} masked/s", per_second=per_second)
        return f"{per_second:,.0f} {self.loss_unit}/s"

    @property
    def loss(self) -> float:
        return sum(step.loss for step in self.steps) / len(self.steps)

    @property
    def seconds_per_step(self) -> float:
        return sum(step.seconds for step in self.steps) / len(self.steps)


@runtime_checkable
class _View(Protocol):
    """What shows steps and validations."""

    throughput: _Throughput

    def step(self, event: Step) -> None: ...

    def validated(self, event: Validated) -> None: ...

    def close(self) -> None: ...


class _LiveView:
    """A progress bar, and below it the newest sample."""

    def __init__(self, console: Console, n_steps: int) -> None:
        self.throughput = _Throughput()
        self.progress = Progress(
            TextColumn("  " + _("training") + "  "),
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TextColumn("{task.fields[speed]}"),
            TimeElapsedColumn(),
            TextColumn(_("left")),
            TimeRemainingColumn(),
            console=console,
        )
        self.bar = self.progress.add_task("training", total=n_steps, speed="")
        self.sample = Text("")
        self.score = ""
        self.live = Live(self._group(), console=console, refresh_per_second=4)
        self.is_started = False

    def _group(self) -> Group:
        loss = _("loss {loss:.2f}", loss=self.throughput.loss) if self.throughput.steps else ""
        figures = " · ".join(filter(None, (loss, self.score)))
        return Group(self.progress, Text(f"{'':<{_LABEL_WIDTH}}{figures}"), self.sample)

    def step(self, event: Step) -> None:
        if not self.is_started:
            self.progress.reset(self.bar, completed=event.step - 1)
            self.live.start()
            self.is_started = True
        self.throughput.add(event)
        self.progress.update(self.bar, completed=event.step, speed=self.throughput.speed)
        self.live.update(self._group())

    def validated(self, event: Validated) -> None:
        self.score = _format_validation(event)
        text, answer, _reference = event.sample
        self.sample = Text(f"{'':<{_LABEL_WIDTH}}{text}\n{'':<{_LABEL_WIDTH - 2}}→ {answer}", style="dim")
        self.live.update(self._group())

    def close(self) -> None:
        if self.is_started:
            self.live.stop()
            self.is_started = False


class _PlainView:
    """One line from time to time, for logs and pipes."""

    def __init__(self, console: Console, n_steps: int) -> None:
        self.console = console
        self.n_steps = n_steps
        self.every = max(1, n_steps // 20)
        self.throughput = _Throughput()

    def step(self, event: Step) -> None:
        self.throughput.add(event)
        if event.step % self.every == 0 or event.step == self.n_steps:
            left = _format_clock(self.throughput.seconds_per_step * (self.n_steps - event.step))
            loss, speed = f"{self.throughput.loss:.3f}", self.throughput.speed
            line = _(
                "step {step:,} of {n_steps:,} · loss {loss} · {speed} · learning rate {learning_rate:.2e} · "
                "{left} left",
                step=event.step,
                n_steps=self.n_steps,
                loss=loss,
                speed=speed,
                learning_rate=event.learning_rate,
                left=left,
            )
            self.console.print(f"  {line}", markup=False)

    def validated(self, event: Validated) -> None:
        text, answer, _reference = event.sample
        step = _("step {step:,}", step=event.step)
        self.console.print(f"  {step} · {_format_validation(event)} · {text} → {answer}", markup=False)

    def close(self) -> None:
        pass


def _format_validation(event: Validated) -> str:
    score, best = format_score(event.metric, event.score), format_score(event.metric, event.best)
    return _("{metric} {score} (best {best})", metric=display_name(event.metric), score=score, best=best)


def _format_clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def show_finished(event: Finished, console: Console) -> None:
    """Show the end of a run: some examples and the scores."""
    if has_random_examples(event.cards):
        title = _("Sentences that are not in the training data")
        console.print(f"\n{title}", style="bold")
        show_random_examples(event.cards, _N_EXAMPLES, console)
    console.print("\n" + _("Scores"), style="bold")
    show_scores({name: card.scores for name, card in event.cards.items()}, console)
    show_notes(event.cards, console)
    show_baselines(event.cards, console)
