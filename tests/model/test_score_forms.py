import pytest
import torch

from manyheads.model.masks import View
from manyheads.model.score_forms import (
    Additive,
    Bilinear,
    Cosine,
    DenseSynthesizer,
    PlainDot,
    RandomSynthesizer,
    ScaledDot,
    ScoreForm,
    make_score_form,
)

from model.makers import VIEWS, largest_difference, real, seeded, sized, small, vectors

HEADS = small(width=6, head_width=3).heads
Q, K = vectors(1, 2, 4, 3), vectors(1, 2, 4, 3, seed=1)
VIEW = View.bidirectional(real("xxxx"))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("scaled-dot", ScaledDot),
        ("dot", PlainDot),
        ("cosine", Cosine),
        ("bilinear", Bilinear),
        ("additive", Additive),
        ("dense-synthesizer", DenseSynthesizer),
        ("random-synthesizer", RandomSynthesizer),
    ],
)
def test_settings_name_the_form(name: str, kind: type) -> None:
    assert type(make_score_form(*sized(small(scores=name)))) is kind


def test_plain_and_scaled_dot_differ_by_the_root_of_the_width() -> None:
    assert torch.allclose(PlainDot()(Q, K, VIEW), ScaledDot()(Q, K, VIEW) * 3**0.5)


def test_scaling_keeps_the_spread_of_scores_near_one_at_any_width() -> None:
    spreads = {}
    for width in (16, 1024):
        q, k = (torch.randn(1, 1, 100, width, generator=seeded(seed)) for seed in (0, 1))
        view = View.bidirectional(torch.ones(1, 100, dtype=torch.bool))
        assert ScaledDot()(q, k, view).std().item() == pytest.approx(1.0, abs=0.1)
        spreads[width] = PlainDot()(q, k, view).std().item()
    assert spreads[1024] / spreads[16] == pytest.approx(8, rel=0.1)


def test_cosine_knows_only_directions() -> None:
    form = Cosine(HEADS)
    scores = form(Q, K, VIEW)
    assert largest_difference(scores, form(5 * Q, 0.1 * K, VIEW)) < 1e-5
    assert torch.allclose(form(Q, Q, VIEW).diagonal(dim1=-2, dim2=-1), torch.tensor(3**0.5))
    assert scores.abs().max() <= 3**0.5 + 1e-5


def test_bilinear_starts_as_the_scaled_dot() -> None:
    assert torch.allclose(Bilinear(HEADS)(Q, K, VIEW), ScaledDot()(Q, K, VIEW))


def test_dense_synthesizer_never_meets_a_key_and_random_not_even_a_query() -> None:
    dense, random = DenseSynthesizer(HEADS, 6), RandomSynthesizer(HEADS, 6)
    assert (dense.reads_queries, dense.reads_keys) == (True, False)
    assert (random.reads_queries, random.reads_keys) == (False, False)
    none = Q[..., :0]
    assert largest_difference(dense(Q, none, VIEW), dense(2 * Q, none, VIEW)) > 0.1
    assert torch.equal(random(none, none, VIEW)[0], random.weight[:, :4, :4])


def test_random_synthesizer_gives_each_sentence_of_a_batch_the_same_table() -> None:
    none, positions = torch.empty(4, 2, 5, 0), torch.arange(5)[None]  # one row of positions for four sentences
    form, view = RandomSynthesizer(HEADS, 6), View(VIEWS["bidirectional"].visible, positions, positions)
    scores = form(none, none, view)
    assert torch.equal(scores, form.weight[None, :, :5, :5].expand(4, -1, -1, -1))


def test_the_interface_by_itself_says_so() -> None:
    with pytest.raises(TypeError, match="ScoreForm is not a score form by itself"):
        ScoreForm()(Q, K, VIEW)
