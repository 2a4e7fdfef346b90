"""Label smoothing of one target, and which tokens of a vocabulary are listed."""

import numpy as np
import pytest
import torch

from manyheads.model.losses import smoothed_cross_entropy
from manyheads.walks.output_walk import OutputWalk, walk_loss, walk_output


def output_of(vocab_size: int, target: int | None) -> OutputWalk:
    generator = torch.Generator().manual_seed(0)
    hidden, matrix = (torch.randn(shape, generator=generator).double() for shape in ((4,), (vocab_size, 4)))
    return walk_output(
        hidden,
        matrix,
        position=0,
        reads="a",
        writes=None,
        target=target,
        name_of=str,
        is_tied=True,
        final_norm=None,
    )


def test_targets_of_five_words() -> None:
    walked = walk_loss(np.array([0.3, 1.2, -0.5, 0.0, 0.1]), 1, 0.1)
    np.testing.assert_allclose(walked.targets, [0.025, 0.9, 0.025, 0.025, 0.025], rtol=0, atol=1e-15)
    assert (walked.right, walked.wrong) == (0.9, 0.025)
    assert walked.targets.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
def test_loss_is_that_of_training(smoothing: float) -> None:
    logits = np.random.default_rng(0).normal(size=7)
    walked = walk_loss(logits, 3, smoothing)
    expected = smoothed_cross_entropy(torch.from_numpy(logits)[None], torch.tensor([3]), smoothing)
    assert walked.loss == pytest.approx(float(expected), abs=1e-12)
    assert walked.loss == pytest.approx(-(walked.targets * walked.log_probabilities).sum(), abs=1e-12)
    assert walked.loss_unsmoothed == pytest.approx(-walked.log_probabilities[3], abs=1e-12)
    best = walk_loss(np.log(np.maximum(walked.targets, 1e-300)), 3, smoothing)
    assert best.loss == pytest.approx(walked.smallest_loss, abs=1e-9)
    assert walked.loss > walked.smallest_loss


def test_small_vocabulary_is_listed_whole() -> None:
    walked = output_of(6, 2)
    assert walked.ids == tuple(range(6))
    np.testing.assert_allclose(walked.vectors @ walked.hidden, walked.logits, rtol=0, atol=1e-12)


def test_of_a_large_vocabulary_the_most_probable_and_the_written_token_are_listed() -> None:
    unlikely = int(output_of(500, None).logits.argmin())
    walked = output_of(500, unlikely)
    assert walked.ids[-1] == unlikely
    assert walked.names[-1] == str(unlikely)
    assert list(walked.ids[:-1]) == np.argsort(-walked.logits)[:8].tolist()
    assert len(output_of(500, walked.ids[0]).ids) == 8
    np.testing.assert_allclose(walked.vectors @ walked.hidden, walked.logits[list(walked.ids)], rtol=0, atol=1e-12)
