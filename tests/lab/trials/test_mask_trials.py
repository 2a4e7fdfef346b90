import pytest
import torch

from manyheads.lab.trials.mask_trials import MASKINGS, mask_in, with_masking
from manyheads.model import ModelSettings, Tap, Transformer, evaluating

VISIBLE = torch.tensor([[True, True, False]])
SMALL = torch.tensor([[1.0, 2.0, 3.0]])
LARGE = torch.tensor([[0.0, 3000.0, 6000.0]])  # the hidden key has by far the highest score


def weights(masking: str, scores: torch.Tensor = SMALL, precision: str = "float32") -> torch.Tensor:
    return mask_in(precision, masking, scores, VISIBLE)


def test_zero_after_leaves_the_share_of_hidden_keys_missing() -> None:
    whole = SMALL.softmax(-1)
    assert torch.equal(weights("zero"), torch.tensor([[whole[0, 0], whole[0, 1], 0.0]]))


@pytest.mark.parametrize("masking", ["renormalized", "1000", "1e9"])
def test_other_maskings_equal_minus_infinity_for_small_scores(masking: str) -> None:
    torch.testing.assert_close(weights(masking), weights("infinity"))


def test_minus_1000_gives_all_weight_to_a_hidden_key_with_a_large_score() -> None:
    assert weights("1000", LARGE).tolist() == [[0.0, 0.0, 1.0]]
    assert weights("1e9", LARGE).tolist() == weights("infinity", LARGE).tolist() == [[0.0, 1.0, 0.0]]


def test_renormalizing_cannot_restore_weights_that_underflowed() -> None:
    assert weights("renormalized", LARGE).tolist() == [[0.0, 0.0, 0.0]]


def test_minus_1e9_is_infinite_in_float16_only() -> None:
    nothing = torch.zeros(1, 3, dtype=torch.bool)
    assert mask_in("float16", "1e9", SMALL, nothing).isnan().all()
    assert not mask_in("bfloat16", "1e9", SMALL, nothing).isnan().any()
    assert mask_in("float16", "infinity", SMALL, nothing).tolist() == [[0.0, 0.0, 0.0]]


def test_a_model_uses_the_masking_with_and_without_a_tap() -> None:
    torch.manual_seed(1)
    settings = ModelSettings(
        vocab_size=20, shape="encoder", width=16, n_heads=2, n_encoder_layers=1, feed_forward_width=16, dropout=0.0
    )
    model = Transformer(settings)
    source = torch.tensor([[3, 4, 5, 0, 0]])
    is_real = source != 0
    outputs = {}
    with evaluating(model):
        plain = model.hidden(source, source_is_real=is_real)
        for masking in MASKINGS:
            with_masking(model, masking, "float32")
            tap = Tap()
            outputs[masking] = model.hidden(source, source_is_real=is_real)
            assert torch.equal(model.hidden(source, source_is_real=is_real, tap=tap), outputs[masking])
            assert (tap["encoder.0.self.weights"][..., 3:] == 0).all()
    torch.testing.assert_close(outputs["infinity"], plain)
    assert not torch.allclose(outputs["zero"], plain, atol=1e-3)
