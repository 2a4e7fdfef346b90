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
)

from model.makers import VIEWS, attention_of, largest_difference, real, seeded, small, vectors

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
def test_settings_name_the_score_form(name: str, kind: type) -> None:
    assert type(attention_of(small(scores=name)).scores) is kind


def test_scaled_dot_divides_by_the_square_root_of_the_head_width() -> None:
    assert torch.allclose(PlainDot(HEADS, 6)(Q, K, VIEW), ScaledDot(HEADS, 6)(Q, K, VIEW) * 3**0.5)


def test_scaling_keeps_the_standard_deviation_of_scores_near_one() -> None:
    deviations = {}
    for width in (16, 1024):
        q, k = (torch.randn(1, 1, 100, width, generator=seeded(seed)) for seed in (0, 1))
        view = View.bidirectional(torch.ones(1, 100, dtype=torch.bool))
        assert ScaledDot(HEADS, 6)(q, k, view).std().item() == pytest.approx(1.0, abs=0.1)
        deviations[width] = PlainDot(HEADS, 6)(q, k, view).std().item()
    assert deviations[1024] / deviations[16] == pytest.approx(8, rel=0.1)


def test_cosine_ignores_the_length_of_vectors() -> None:
    form = Cosine(HEADS, 6)
    scores = form(Q, K, VIEW)
    assert largest_difference(scores, form(5 * Q, 0.1 * K, VIEW)) < 1e-5
    assert torch.allclose(form(Q, Q, VIEW).diagonal(dim1=-2, dim2=-1), torch.tensor(3**0.5))
    assert scores.abs().max() <= 3**0.5 + 1e-5


def test_bilinear_is_initialized_to_the_scaled_dot() -> None:
    assert torch.allclose(Bilinear(HEADS, 6)(Q, K, VIEW), ScaledDot(HEADS, 6)(Q, K, VIEW))


def test_synthesizers_do_not_read_keys() -> None:
    dense, random = DenseSynthesizer(HEADS, 6), RandomSynthesizer(HEADS, 6)
    assert (dense.reads_queries, dense.reads_keys) == (True, False)
    assert (random.reads_queries, random.reads_keys) == (False, False)
    none = Q[..., :0]
    assert largest_difference(dense(Q, none, VIEW), dense(2 * Q, none, VIEW)) > 0.1
    assert torch.equal(random(none, none, VIEW)[0], random.weight[:, :4, :4])


def test_random_synthesizer_gives_every_sentence_the_same_scores() -> None:
    none, positions = torch.empty(4, 2, 5, 0), torch.arange(5)[None]  # one row of positions for four sentences
    form, view = RandomSynthesizer(HEADS, 6), View(VIEWS["bidirectional"].visible, positions, positions)
    scores = form(none, none, view)
    assert torch.equal(scores, form.weight[None, :, :5, :5].expand(4, -1, -1, -1))


def test_the_base_class_does_not_compute_scores() -> None:
    with pytest.raises(NotImplementedError, match="ScoreForm does not define forward"):
        ScoreForm(HEADS, 6)(Q, K, VIEW)


def test_additive_is_initialized_so_that_scores_do_not_grow_with_the_width() -> None:
    wide = small(width=4096, n_heads=2).heads
    torch.manual_seed(0)
    assert Additive(wide, 6).weight.std().item() == pytest.approx(wide.head_width**-0.5, rel=0.05)
