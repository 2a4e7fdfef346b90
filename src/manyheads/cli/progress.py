"""What a run looks like in a terminal: a live bar with a sample translation, or plain lines for logs."""

import sys
from collections.abc import Iterator, Mapping

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from manyheads.cli.scorecard import show_failures, show_samples, show_scores
from manyheads.cli.stopping import StopRequest
from manyheads.metrics import TranslationCard, format_score
from manyheads.run import Event, Finished, Prepared, RecipeChanged, Resumed, Stage, StoppedEarly, Validated
from manyheads.train import Step

_LABEL = 12  # width of the first column
_SAMPLES = 5  # translations shown of each test set


def make_console(*, plain: bool) -> Console:
    """A console on standard output; plain means no colour and no wrapping."""
    return Console(no_color=plain, soft_wrap=plain or not sys.stdout.isatty(), highlight=False)


def show_run(events: Iterator[Event], console: Console, stop: StopRequest, n_steps: int, *, plain: bool) -> Event:
    """Draw events as they come; the last one, which says how it ended."""
    is_live = console.is_terminal and not plain
    view: _LiveView | _PlainView = _LiveView(console, n_steps) if is_live else _PlainView(console, n_steps)
    status = console.status("")  # shows nothing where the output is not a terminal
    last: Event | None = None
    try:
        for event in events:
            last = event
            status.stop()
            if isinstance(event, Stage):
                stop.armed = False  # nothing to save here: a stage is simply done again
                view.close()
                status.update(f"[dim]{event.description} …")
                status.start()
            elif isinstance(event, RecipeChanged):
                for change in event.changes:
                    console.print(f"  {'recipe':<{_LABEL}}edited: {change}", markup=False)
            elif isinstance(event, Prepared):
                _show_prepared(event, console)
                view.throughput.loss_unit = event.loss_unit
            elif isinstance(event, Resumed):
                for warning in event.warnings:
                    console.print(f"  damaged     {warning} An older checkpoint is used.", style="yellow")
                console.print(f"  {'resuming':<{_LABEL}}from step {event.step:,}")
            elif isinstance(event, Step):
                stop.armed = True
                view.step(event)
            elif isinstance(event, Validated):
                view.validated(event)
            elif isinstance(event, StoppedEarly):
                view.close()
                console.print(
                    f"  {'stopped':<{_LABEL}}at step {event.step:,}: no better score since step {event.best_step:,}, "
                    "whose weights are taken"
                )
    finally:
        status.stop()
        view.close()
    assert last is not None  # a run has at least one event
    return last


def _show_prepared(event: Prepared, console: Console) -> None:
    for warning in event.warnings:
        console.print(f"  {'damaged':<{_LABEL}}{warning} It was made anew.", style="yellow", markup=False)
    console.print(f"  {'text':<{_LABEL}}{event.n_rows:,} {event.noun}{_dropped(event.dropped)}")
    console.print(f"  {'tokenizer':<{_LABEL}}{event.vocab_size:,} tokens")
    if event.warm_start:
        console.print(f"  {'begins with':<{_LABEL}}{event.warm_start}", markup=False)
    console.print(
        f"  {'model':<{_LABEL}}{event.n_parameters / 1e6:.1f} M parameters on {event.device}"
        f" · ready after {event.seconds:.1f} s"
    )


def _dropped(reasons: Mapping[str, int]) -> str:
    """How many pairs are not trained on, and why: the commonest reason first."""
    if not any(reasons.values()):
        return ""
    told = sorted(((count, reason) for reason, count in reasons.items() if count), key=lambda item: -item[0])
    return f" · {sum(reasons.values()):,} left out: " + ", ".join(f"{count:,} {reason}" for count, reason in told)


class _Throughput:
    """Speed and mean loss, over the last hundred steps."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.loss_unit = "tok"  # what the loss is averaged over

    def add(self, step: Step) -> None:
        self.steps = [*self.steps[-99:], step]

    @property
    def speed(self) -> str:
        per_second = sum(step.n_tokens for step in self.steps) / sum(step.seconds for step in self.steps)
        return f"{per_second:,.0f} {self.loss_unit}/s"

    @property
    def loss(self) -> float:
        return sum(step.loss for step in self.steps) / len(self.steps)


class _LiveView:
    """A bar that moves, and below it the newest sample translation."""

    def __init__(self, console: Console, n_steps: int) -> None:
        self.throughput = _Throughput()
        self.best = Text("")
        self.progress = Progress(
            TextColumn(f"  {'training':<{_LABEL - 1}}"),
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TextColumn("{task.fields[speed]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[loss]}"),
            TextColumn("{task.fields[bleu]}"),
            console=console,
        )
        self.bar = self.progress.add_task("training", total=n_steps, speed="", loss="", bleu="")
        self.sample = Text("")
        self.live = Live(Group(self.progress, self.sample), console=console, refresh_per_second=4)
        self.is_started = False

    def step(self, event: Step) -> None:
        if not self.is_started:
            self.progress.reset(self.bar, completed=event.step - 1)
            self.live.start()
            self.is_started = True
        self.throughput.add(event)
        self.progress.update(
            self.bar,
            completed=event.step,
            speed=self.throughput.speed,
            loss=f"loss {self.throughput.loss:.2f}",
        )

    def validated(self, event: Validated) -> None:
        self.progress.update(self.bar, bleu=_score(event))
        source, translation, _ = event.sample
        self.sample = Text(f"{'':<{_LABEL + 2}}{source}\n{'':<{_LABEL}}→ {translation}", style="dim")
        self.live.update(Group(self.progress, self.sample))

    def close(self) -> None:
        if self.is_started:
            self.live.stop()
            self.is_started = False


class _PlainView:
    """One line now and then, for logs and pipes."""

    def __init__(self, console: Console, n_steps: int) -> None:
        self.console = console
        self.n_steps = n_steps
        self.every = max(1, n_steps // 20)
        self.throughput = _Throughput()

    def step(self, event: Step) -> None:
        self.throughput.add(event)
        if event.step % self.every == 0 or event.step == self.n_steps:
            mean = sum(step.seconds for step in self.throughput.steps) / len(self.throughput.steps)
            left = mean * (self.n_steps - event.step)
            self.console.print(
                f"  step {event.step:,} of {self.n_steps:,} · loss {self.throughput.loss:.3f} · "
                f"{self.throughput.speed} · learning rate {event.learning_rate:.2e} · {_clock(left)} left"
            )

    def validated(self, event: Validated) -> None:
        source, translation, _ = event.sample
        self.console.print(
            f"  step {event.step:,} · {_score(event)} · {source} → {translation}",
            markup=False,
        )

    def close(self) -> None:
        pass


def _score(event: Validated) -> str:
    return f"{event.metric} {format_score(event.metric, event.score)} (best {format_score(event.metric, event.best)})"


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def show_finished(event: Finished, console: Console) -> None:
    """The end of a run: some of its translations, and the scorecard."""
    translated = [card for card in event.cards.values() if isinstance(card, TranslationCard)]
    if translated:
        console.print("\nSentences it has never seen · 未见过的句子", style="bold")
    for card in translated:
        show_samples(card.random[:_SAMPLES], console)
    console.print("\nScore · 得分", style="bold")
    show_scores({name: card.scores for name, card in event.cards.items()}, console)
    show_failures(translated, console)
