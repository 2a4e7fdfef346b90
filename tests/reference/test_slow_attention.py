import pytest

from manyheads.model import ModelSettings

from model.makers import choices, describe, largest_difference, passes, product_of
from reference.slow_attention import slow_attention

KINDS = [
    *product_of(scores=choices("scores"), positions=["none", "rotary", "alibi"], n_heads=[4], n_key_heads=[2]),
    *product_of(scores=choices("scores"), attention_bias=[True], head_width=[6], value_width=[3]),
    *product_of(projections=choices("projections"), attention_bias=[False, True], positions=["rotary", "alibi"]),
]


@pytest.mark.parametrize("settings", KINDS, ids=describe)
def test_attention_equals_its_slow_reference(settings: ModelSettings) -> None:
    for module, x, y, view in passes(settings):
        assert largest_difference(module(x, y, view), slow_attention(module, settings, x, y, view)) <= 1e-5
