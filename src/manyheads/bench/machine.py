"""The short benchmark: `measure_machine` and `measure_bundle` yield one event per measurement, in about a minute."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from manyheads.bench.decoding_speed import (
    DecodingSpeed,
    EngineComparison,
    MissingEngine,
    bundle_cases,
    make_endless_model,
    model_cases,
)
from manyheads.bench.training_speed import MatmulSpeed, Sentences, TrainingSpeed, measure_training
from manyheads.bundle import Bundle
from manyheads.errors import DataError
from manyheads.messages import _
from manyheads.model import ModelSettings
from manyheads.run import Corpus, Recipe
from manyheads.text.reading.readers import read_lines


@dataclass(frozen=True)
class Measuring:
    """A measurement that starts now."""

    what: str


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much of a preset is measured: a few seconds each."""

    vocab_size: int
    batch_tokens: int
    training_seconds: float
    n_sentences: int
    n_latency: int
    decoding_seconds: float


Event = Measuring | Sentences | MatmulSpeed | TrainingSpeed | DecodingSpeed | MissingEngine

SIZES = {
    "tiny": Size(
        vocab_size=6_000, batch_tokens=1200, training_seconds=4.0, n_sentences=192, n_latency=8, decoding_seconds=5.0
    ),
    "base": Size(
        vocab_size=16_000, batch_tokens=500, training_seconds=5.0, n_sentences=32, n_latency=3, decoding_seconds=7.0
    ),
}
_BUNDLE_SECONDS = 12.0
_N_TEXTS = 200
_PROMPT = 60  # characters


def measure_machine(names: Sequence[str]) -> Iterator[Event]:
    """Measure matrix products, then training and translation with untrained models of these sizes."""
    yield Measuring(_("multiplying matrices"))
    matmul = MatmulSpeed.measure()
    yield matmul
    yield Measuring(_("preparing sentences"))
    with Sentences.make() as sentences:
        yield sentences
        for name in names:
            size = SIZES[name]
            settings = ModelSettings.preset(name, vocab_size=size.vocab_size, max_length=256)
            yield Measuring(_("training the {name} model", name=name))
            yield measure_training(
                name, settings, sentences, matmul, batch_tokens=size.batch_tokens, seconds=size.training_seconds
            )
            yield Measuring(_("translating with the {name} model", name=name))
            sources = sentences.sources(size.n_sentences)
            comparison = EngineComparison(name, sources, size.n_latency, size.decoding_seconds)
            comparison.cases, missing = model_cases(make_endless_model(settings), sources)
            yield from comparison.run()
        yield from missing  # the same for every size


def read_texts(bundle: Bundle, lines: Path | None = None) -> list[str]:
    """Inputs for a bundle: the lines of a file, or the validation set of its recipe."""
    try:
        if lines is not None:
            texts = list(islice((line for line in read_lines(str(lines)) if line.strip()), _N_TEXTS))
        else:
            recipe = Recipe.from_table(bundle.recipe)
            rows = Corpus.of(recipe).valid()
            texts = [row[0] for row in islice(bundle.task.usable(rows), _N_TEXTS)]
    except DataError as error:
        if lines is not None:
            raise
        raise DataError(
            _("{error} The bundle's validation set cannot be read: pass texts with --lines FILE.", error=error)
        ) from None
    if not texts:
        if lines is None:
            raise DataError(_("The validation set has no text. Pass texts with --lines FILE."))
        raise DataError(_("{lines} has no text. Pass texts with --lines FILE.", lines=lines))
    # A model that continues prompts gets the beginning of each document.
    return [text[:_PROMPT] for text in texts] if bundle.task.continues_prompts else texts


def measure_bundle(bundle: Bundle, texts: Sequence[str]) -> Iterator[Event]:
    """Measure the predictions of a bundle, from text to text."""
    yield Measuring(_("predicting"))
    comparison = EngineComparison("bundle", texts, min(5, len(texts)), _BUNDLE_SECONDS)
    comparison.cases, missing = bundle_cases(bundle)
    yield from comparison.run()
    yield from missing
