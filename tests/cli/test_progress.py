"""The progress of a run in a terminal: bar, sample, warnings, scores."""

import re
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from manyheads.cli.rendering.progress import show_finished, show_run
from manyheads.language import Language, using
from manyheads.metrics import Score, TranslationCard, TranslationExample
from manyheads.run import Event, Finished, Prepared, Resumed, Stage, Validated
from manyheads.training import Step, TrainSettings

EVENTS: list[Event] = [
    Stage("learning 3,000 tokens from the text"),
    Prepared(
        noun="sentence pairs",
        loss_unit="tok",
        n_rows=1234,
        dropped={"empty": 5, "duplicate": 1200, "too long": 0},
        vocab_size=3000,
        n_parameters=1_500_000,
        device="cpu",
        seconds=2.0,
        loss_terms={"label smoothing": 0.1, "R-Drop": 5.0},
        n_threads=4,
        has_too_few_cores=True,
        old_torch="2.0.1",
    ),
    Prepared(
        noun="sentence pairs",
        loss_unit="tok",
        n_rows=9,
        dropped={},
        vocab_size=300,
        n_parameters=1,
        device="cpu",
        seconds=1.0,
        warnings=["ids are damaged."],
        n_valid=77,
        valid_dropped={"in test": 23},
    ),
    Resumed(9, ["step-00000010: weights.safetensors is damaged."]),
    *(
        Step(step=n, epoch=0, loss=3.0, learning_rate=1e-3, gradient_norm=1.0, n_tokens=100, seconds=0.1)
        for n in (10, 11)
    ),
    Validated(
        step=11, metric="BLEU", score=54.2, best=61.0, sample=("The [dog] sleeps.", "那条狗在睡觉。", "那只狗在睡觉。")
    ),
    Finished(
        bundle=Path("runs/x/bundle"),
        cards={
            "test": TranslationCard(
                scores=[Score("BLEU", 97.94, 97.4, 98.3, "tok:zh|version:2")],
                n_sentences=100,
                length_ratio=1.0,
                n_copies=0,
                n_wrong_copies=0,
                n_repetitions=0,
                n_empty=0,
                n_empty_references=0,
                n_cut_off=2,
                n_too_long=0,
                worst=[],
                random=[
                    TranslationExample(n, f"The [dog] sleeps {n} times.", "那条狗在睡觉。", "那只狗在睡觉。", 60)
                    for n in range(10)
                ],
            )
        },
    ),
]


def draw(*, plain: bool, warmup: int = 2, width: int = 140) -> str:
    stream = StringIO()
    console = Console(
        file=stream,
        force_terminal=not plain,
        width=width,
        no_color=True,
        highlight=False,
        soft_wrap=plain,
        _environ={},  # TERM=dumb has no bar
    )
    last = show_run(iter(EVENTS), console, TrainSettings(steps=11, warmup=warmup), plain=plain)
    assert isinstance(last, Finished)
    show_finished(last, console)
    return stream.getvalue()


def test_terminal_shows_a_bar_with_speed_loss_and_a_sample() -> None:
    text = draw(plain=False)
    for expected in (
        "1,234 of 2,439 sentence pairs · 1,205 kept out: 1,200 duplicate, 5 empty",
        "9 sentence pairs\n",
        "damaged     ids are damaged. It was built again.",
        "1,000 tok/s",
        "100%",
        "loss 3.00",
        "BLEU 54.2 (best 61.0)",
    ):
        assert expected in text
    assert "The [dog] sleeps." in text  # brackets are not rich's markup
    assert "weights.safetensors is damaged. An older checkpoint is used." in text
    assert "learning 3,000 tokens" in text


def test_rows_dropped_from_validation_are_shown() -> None:
    assert "  validation  77 of 100 sentence pairs · 23 kept out: 23 in test\n" in draw(plain=True)
    with using("zh"):
        assert "  验证集      77 / 100 句对 · 排除 23：与测试集重复 23\n" in draw(plain=True)


def test_plain_lines_have_the_same_content() -> None:
    text = draw(plain=True)
    assert "\x1b" not in text
    assert "step 11 of 11 · loss 3.000 · 1,000 tok/s" in text
    assert "The [dog] sleeps. → 那条狗在睡觉。" in text


def test_legend_says_what_the_loss_averages_once() -> None:
    legend = "  loss        mean of the last 100 steps, in nats per token, with label smoothing 0.1 and R-Drop 5\n"
    assert draw(plain=True).count(legend) == 1
    with using("zh"):
        assert "  损失        最近 100 步的平均值，每个词元的奈特数，含标签平滑 0.1、R-Drop 5\n" in draw(plain=True)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_wrapped_rows_are_indented_in_a_narrow_terminal(language: Language) -> None:
    with using(language):
        lines = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", draw(plain=False, warmup=44, width=60)).splitlines()
    label = {"en": "warm-up", "zh": "预热"}[language]
    number = next(number for number, line in enumerate(lines) if line.startswith(f"  {label} "))
    assert "44" in lines[number]
    assert re.match(r" {14}\S", lines[number + 1])


def test_threads_are_shown_and_fewer_cores_are_a_warning() -> None:
    text = draw(plain=True)
    assert "1.5 M parameters on cpu, 4 threads · ready" in text
    assert "started with 4 threads and keeps them, but the machine has fewer cores: it is slower, and the" in text
    assert "PyTorch     this run started with version 2.0.1" in text


@pytest.mark.parametrize(
    ("warmup", "warning"),
    [
        (5, ""),
        (6, "the warm-up takes 6 steps, 55% of the run of 11 steps. Train longer, or set train.warmup = 1."),
        (44, "the warm-up takes 44 steps, but the run has 11: the learning rate ends at 25% of its peak."),
    ],
)
def test_long_warmup_is_reported(warmup: int, warning: str) -> None:
    text = draw(plain=True, warmup=warmup)
    assert warning in text
    assert ("warm-up" in text) == bool(warning)


def test_scores_have_intervals_signatures_and_notes() -> None:
    text = draw(plain=True)
    assert re.search(r"\n +held-out test +\n BLEU +97\.9 \[97\.4, 98\.3\]", text)
    assert text.count("→ 那条狗在睡觉。") == 5 + 1  # five examples, and the sample of the validation
    assert "BLEU tok:zh|version:2" in text
    assert "expected: 那只狗在睡觉。" in text
    assert "2 translations cut off at the maximum length." in text
