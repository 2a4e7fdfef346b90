"""The scorecard of a language model: perplexities and bits from nats, by hand."""

import json
import math
from dataclasses import asdict

import numpy as np
import pytest

from manyheads.errors import DataError
from manyheads.metrics import GenerationSample, LanguageCard, language_card, masked_card
from manyheads.metrics.card_sections import Figures


def card_of(nats: list[float], **changes: object) -> LanguageCard:
    n = len(nats)
    return language_card(nats, [100] * n, [400] * n, [80] * n, [420] * n, **changes)


def test_by_hand() -> None:
    card = card_of([300.0, 500.0], samples=[GenerationSample("once", " upon a time")])
    values = {score.name: score.value for score in card.scores}
    assert values == {
        "nats per character": pytest.approx(1.0),
        "bits per byte": pytest.approx(800 / 840 / math.log(2)),
        "perplexity per word": pytest.approx(math.exp(5)),
        "perplexity per token": pytest.approx(math.exp(4)),
    }
    assert (card.n_texts, card.n_tokens, card.n_words, card.n_nats) == (2, 200, 160, 800.0)
    assert json.loads(json.dumps(asdict(card)))["samples"] == [{"prompt": "once", "text": " upon a time"}]


def test_uniform_model_has_the_perplexity_of_its_vocab_size() -> None:
    card = language_card([5 * math.log(1000)], [5], [20], [4], [20])
    assert card.scores[-1].value == pytest.approx(1000)


def test_interval_agrees_with_slow_resampling() -> None:
    rng = np.random.default_rng(2)
    tokens = rng.integers(50, 150, size=60)
    nats = tokens * rng.normal(4, 0.3, size=60)
    drawn = []
    for _ in range(500):
        rows = rng.integers(60, size=60)
        drawn.append(math.exp(nats[rows].sum() / tokens[rows].sum()))
    counts = [int(count) for count in tokens]
    card = language_card(nats.tolist(), counts, [4 * n for n in counts], counts, [4 * n for n in counts])
    score = card.scores[-1]
    assert [score.low, score.high] == pytest.approx(np.quantile(drawn, [0.025, 0.975]), rel=0.03)
    assert score.low < score.value < score.high


def test_signature_names_the_items_and_the_context() -> None:
    card = card_of([1.0] * 3, item="blocks", context="context:256|stride:128", n_resamples=10)
    assert {score.signature for score in card.scores} == {"blocks:3|resamples:10|context:256|stride:128"}


def test_text_without_spaces_has_no_perplexity_per_word() -> None:
    card = language_card([900.0], [300], [400], [2], [1200])
    assert [score.name for score in card.scores] == ["nats per character", "bits per byte", "perplexity per token"]
    no_words = language_card([9.0], [3], [4], [0], [12])
    assert "perplexity per word" not in [score.name for score in no_words.scores]


def test_huge_losses_are_valid_json() -> None:
    json.dumps(asdict(card_of([1e9, 1e9])), allow_nan=False)


def test_bad_input() -> None:
    with pytest.raises(DataError, match="the test set is empty"):
        language_card([], [], [], [], [])
    with pytest.raises(ValueError, match="not of the same texts"):
        language_card([1.0], [1, 2], [1], [1], [1])


@pytest.mark.parametrize(
    ("n_correct", "n_masked", "nats", "accuracy", "perplexity"),
    [([3.0, 1.0], [4.0, 4.0], [4.0, 12.0], 50.0, math.exp(2)), ([1.0], [1.0], [0.5], 100.0, math.exp(0.5))],
)
def test_masked_tokens_by_hand(
    n_correct: list[float], n_masked: list[float], nats: list[float], accuracy: float, perplexity: float
) -> None:
    card = masked_card(n_correct, n_masked, nats, context="mask:15%", n_resamples=7)
    assert [(score.name, score.value) for score in card.scores] == [
        ("accuracy of masked tokens", pytest.approx(accuracy)),
        ("perplexity of masked tokens", pytest.approx(perplexity)),
    ]
    assert {score.signature for score in card.scores} == {f"documents:{len(nats)}|resamples:7|mask:15%"}
    assert (card.n_texts, card.n_masked) == (len(nats), sum(n_masked))
    [figures] = card.sections()
    assert isinstance(figures, Figures)
    assert [figure.value for figure in figures.figures] == [len(nats), sum(n_masked)]


def test_no_masked_tokens_are_an_error() -> None:
    with pytest.raises(DataError, match="the test set is empty"):
        masked_card([0.0], [0.0], [0.0])
