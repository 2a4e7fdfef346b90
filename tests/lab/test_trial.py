from dataclasses import replace
from functools import partial

import pytest
import torch
import torch.nn.functional as F

from manyheads.lab.lab_tasks import PAD, Lookup, Reorder, Text, Translation
from manyheads.lab.setup import Setup
from manyheads.lab.trial import Trained, counted_logits, make_model, train_model
from manyheads.lab.trials.attention_trials import attention_statistics, relative_entropy, softmax_gradient
from manyheads.lab.trials.variants import with_score_scale
from manyheads.model import Transformer

SMALL = Setup(
    model={"width": 16, "n_encoder_layers": 1, "feed_forward_width": 16, "n_heads": 2, "n_decoder_layers": 1},
    task=Lookup(n_keys=4, n_values=4, n_records=(2, 4)),
    steps=4,
    n_rows=8,
    warmup=1,
)


def test_arms_start_with_the_same_weights_where_shapes_allow() -> None:
    one = dict(make_model(SMALL, 3).named_parameters())
    other = dict(
        make_model(SMALL.changed({"model.scores": "additive", "model.activation": "gelu"}), 3).named_parameters()
    )
    assert set(one) < set(other)
    assert all(torch.equal(one[name], other[name]) for name in one)
    embedding = "source_embedding.token_embedding.weight"
    assert not torch.equal(one[embedding], dict(make_model(SMALL, 4).named_parameters())[embedding])


def test_initial_weights_have_the_spread_of_the_model() -> None:
    big = SMALL.changed({"model.width": 128, "model.feed_forward_width": 512})
    ours = dict(make_model(big, 1).named_parameters())
    torch.manual_seed(1)
    theirs = dict(Transformer(make_model(big, 1).settings).named_parameters())  # type: ignore[arg-type]
    for name, value in theirs.items():
        assert float(ours[name].detach().std()) == pytest.approx(float(value.detach().std()), rel=0.1, abs=1e-6), name


def test_a_trial_is_reproducible_and_learns() -> None:
    setup = replace(SMALL, steps=120, n_rows=32, learning_rate=1e-2)
    first, again = train_model(setup, 1), train_model(setup, 1)
    assert first.losses == again.losses
    assert first.test_scores() == again.test_scores()
    assert first.test_scores()["accuracy"] > 0.6 > 2 / 4  # guessing gives a quarter


def test_scores_are_means_over_all_counted_positions() -> None:
    trained = train_model(replace(SMALL, steps=1), 1)
    logits, expected = (torch.cat(part) for part in zip(*trained.test_logits(300), strict=True))
    scores = trained.test_scores(300)
    assert scores["accuracy"] == pytest.approx(float((logits.argmax(-1) == expected).double().mean()), abs=1e-9)
    assert scores["loss"] == pytest.approx(float(F.cross_entropy(logits.double(), expected)), abs=1e-6)


def test_a_diverging_run_is_marked_and_still_measured() -> None:
    def explode(logits: torch.Tensor, expected: torch.Tensor, smoothing: float) -> torch.Tensor:
        return F.cross_entropy(logits, expected) * float("inf")

    trained = train_model(replace(SMALL, loss=explode), 1)
    assert trained.has_diverged
    assert 0.0 <= trained.test_scores()["accuracy"] <= 1.0


def test_steps_to_a_loss() -> None:
    trained = Trained(torch.nn.Identity(), SMALL, 1, (4.0, 3.0, 2.0, 1.0), (), False)
    assert trained.steps_to(2.5, window=2) == 3
    assert trained.steps_to(0.5, window=2) == SMALL.steps + 1


@pytest.mark.parametrize("n_lookups", [1, 2])
def test_lookup_asks_for_keys_that_are_there(n_lookups: int) -> None:
    task = Lookup(n_keys=5, n_values=3, n_records=(2, 4), n_lookups=n_lookups)  # type: ignore[arg-type]
    batch = task.batch(50, torch.Generator().manual_seed(1))
    assert batch.source is not None
    first_query, first_record = 1 + task.n_answers, 1 + task.n_answers + 5**n_lookups
    for row, answer in zip(batch.source.tolist(), batch.expected[:, 0].tolist(), strict=True):
        records = dict(divmod(one - first_record, 3) for one in row[1:] if one != PAD)
        assert len(records) == sum(one != PAD for one in row[1:]) >= 2
        asked = row[0] - first_query
        keys = [asked] if n_lookups == 1 else list(divmod(asked, 5))
        found = [records[key] for key in keys]
        assert answer - 1 == (found[0] if n_lookups == 1 else found[0] * 3 + found[1])
    assert batch.is_counted.sum() == batch.n_tokens == 50
    assert int(batch.source.max()) < task.vocab_size


def test_noise_changes_training_answers_only() -> None:
    clean, noisy = Lookup(), Lookup(noise=0.5)
    draws = [task.batch(400, torch.Generator().manual_seed(1)).expected for task in (clean, noisy)]
    assert 0.3 < (draws[0] != draws[1])[:, 0].double().mean() < 0.6
    tests = [task.batch(400, torch.Generator().manual_seed(1), split="test").expected for task in (clean, noisy)]
    assert torch.equal(*tests)


def test_reorder_reverses_or_shifts_real_symbols() -> None:
    reverse = Reorder(lengths=(2, 5)).batch(20, torch.Generator().manual_seed(1))
    previous = Reorder("previous", lengths=(2, 5)).batch(20, torch.Generator().manual_seed(1))
    assert reverse.source is not None and previous.source is not None
    for row in range(20):
        symbols = [one for one in reverse.source[row].tolist() if one != PAD]
        assert reverse.expected[row][reverse.is_counted[row]].tolist() == symbols[::-1]
        symbols = [one for one in previous.source[row].tolist() if one != PAD]
        assert previous.expected[row][previous.is_counted[row]].tolist() == symbols[:-1]


def test_text_is_shifted_or_masked() -> None:
    causal = Text(n_train=200).batch(8, torch.Generator().manual_seed(1))
    assert causal.target is not None
    is_next = causal.is_counted[:, 1:]
    assert torch.equal(causal.target[:, 1:][is_next], causal.expected[:, :-1][is_next])
    masked = Text("masked", n_train=200).batch(8, torch.Generator().manual_seed(1))
    assert masked.source is not None
    assert (masked.source[masked.is_counted] == 3).all()
    assert torch.equal(masked.source[~masked.is_counted], masked.expected[~masked.is_counted])


def test_translation_reads_what_it_has_written() -> None:
    batch = Translation(n_train=200).batch(8, torch.Generator().manual_seed(1))
    assert batch.source is not None and batch.target is not None
    is_next = batch.is_counted[:, 1:]
    assert torch.equal(batch.target[:, 1:][is_next], batch.expected[:, :-1][is_next])
    assert ((batch.target != PAD) == batch.is_counted).all()
    assert set(batch.source.unique().tolist()).isdisjoint(set(batch.expected.unique().tolist()) - {0, 2})


def test_the_gradient_of_the_scores_is_that_of_autograd() -> None:
    scores = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    weights = scores.softmax(-1)
    weights.retain_grad()
    (weights * torch.randn(3, 5, dtype=torch.float64)).sum().backward()
    assert weights.grad is not None and scores.grad is not None
    assert torch.allclose(softmax_gradient(weights.detach(), weights.grad), scores.grad)


def test_entropy_is_a_share_of_the_highest() -> None:
    visible = torch.tensor([[True] * 4, [True, True, False, False]])
    uniform = torch.tensor([[0.25] * 4, [0.5, 0.5, 0.0, 0.0]])
    assert relative_entropy(uniform, visible) == pytest.approx(1.0)
    assert relative_entropy(torch.eye(4)[:2], visible) == pytest.approx(0.0, abs=1e-6)


def test_statistics_of_attention_follow_the_scale() -> None:
    setup = SMALL.changed({"model.head_width": 64})
    plain, scaled = (
        attention_statistics(make_model(replace(setup, alter=partial(with_score_scale, power=power)), 1), setup, 1)
        for power in (0.0, 0.5)
    )
    assert plain.score_variance / scaled.score_variance == pytest.approx(64, rel=1e-4)
    assert plain.entropy < scaled.entropy
    assert plain.median_gradient < scaled.median_gradient


def test_the_paper_s_scale_is_the_power_one_half() -> None:
    batch = SMALL.task.batch(4, torch.Generator().manual_seed(1))
    usual = counted_logits(make_model(SMALL, 1), batch)
    altered = counted_logits(make_model(replace(SMALL, alter=partial(with_score_scale, power=0.5)), 1), batch)
    assert torch.allclose(usual, altered, atol=1e-6)


def test_unknown_changes_are_refused() -> None:
    with pytest.raises(KeyError, match="stepz"):
        SMALL.changed({"stepz": 3})
