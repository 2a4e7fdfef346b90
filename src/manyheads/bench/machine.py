"""The short form of the benchmarks: a minute on two cores, one event for everything that was found."""

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
from manyheads.bench.products import MatmulSpeed
from manyheads.bench.sentences import Sentences
from manyheads.bench.training_speed import TrainingSpeed, measure_training
from manyheads.bundle import Bundle
from manyheads.errors import DataError
from manyheads.model import ModelSettings
from manyheads.run import Corpus, Recipe
from manyheads.text.readers import read_lines


@dataclass(frozen=True)
class Stage:
    """What begins now."""

    what: str


@dataclass(frozen=True, kw_only=True)
class Size:
    """A preset, and how much of it can be seen in a few seconds."""

    vocab_size: int
    batch_tokens: int
    training_seconds: float
    n_sentences: int
    n_latency: int
    decoding_seconds: float


Event = Stage | Sentences | MatmulSpeed | TrainingSpeed | DecodingSpeed | MissingEngine

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
    """MatmulSpeed, then training and translating by untrained models of these sizes."""
    yield Stage("multiplying matrices")
    matmul = MatmulSpeed.measure()
    yield matmul
    yield Stage("writing sentences")
    with Sentences.make() as sentences:
        yield sentences
        for name in names:
            size = SIZES[name]
            settings = ModelSettings.preset(name, vocab_size=size.vocab_size, max_length=256)
            yield Stage(f"training the {name} model")
            yield measure_training(
                name, settings, sentences, matmul, batch_tokens=size.batch_tokens, seconds=size.training_seconds
            )
            yield Stage(f"translating by the {name} model")
            comparison = EngineComparison(
                name, sentences.sources(size.n_sentences), size.n_latency, size.decoding_seconds
            )
            comparison.cases, missing = model_cases(make_endless_model(settings))
            yield from comparison.run()
        yield from missing  # the same for every size


def read_texts(bundle: Bundle, lines: Path | None = None) -> list[str]:
    """Texts for a bundle to answer: lines of a file, or what its recipe keeps for validation."""
    try:
        if lines is not None:
            found = list(islice((line for line in read_lines(str(lines)) if line.strip()), _N_TEXTS))
        else:
            recipe = Recipe.from_table(bundle.recipe)
            rows = Corpus.of(recipe).valid()
            found = [row[0] for row in islice(bundle.task.usable(rows), _N_TEXTS)]
    except DataError as error:
        told = " The bundle's own valid set cannot be read: give texts with --lines FILE." if lines is None else ""
        raise DataError(f"{error}{told}") from None
    if not found:
        raise DataError(f"{lines or 'The valid set'} has no text to answer. Give some with --lines FILE.")
    # A document is there to be foretold; what somebody would have continued is its beginning.
    return [text[:_PROMPT] for text in found] if bundle.kind == "language" else found


def measure_bundle(bundle: Bundle, texts: Sequence[str]) -> Iterator[Event]:
    """Texts answered by a bundle, from text to text."""
    yield Stage("answering")
    comparison = EngineComparison("bundle", texts, min(5, len(texts)), _BUNDLE_SECONDS)
    comparison.cases, missing = bundle_cases(bundle)
    yield from comparison.run()
    yield from missing
