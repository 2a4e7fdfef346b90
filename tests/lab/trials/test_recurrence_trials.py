import pytest
import torch
from torch import Generator

from manyheads.lab.lab_tasks import PAD, Recall
from manyheads.lab.setup import Setup
from manyheads.lab.trial import counted_logits, make_model
from manyheads.lab.trials.recurrence_trials import RecurrentModel, as_lstm, far_gradient, step_seconds

SETUP = Setup(
    model={"width": 32, "n_decoder_layers": 2, "feed_forward_width": 64, "n_heads": 4, "norm_placement": "pre"},
    task=Recall(distance=4),
    n_rows=8,
)
IDS = torch.randint(1, 50, (3, 7), generator=Generator().manual_seed(1))


def _model(has_attention):
    torch.manual_seed(1)
    return RecurrentModel(50, 8, 12, has_attention=has_attention)


def test_without_attention_it_is_torchs_lstm():
    model = _model(has_attention=False)
    states, _ = model.lstm(model.output.weight[IDS] * 8**0.5)
    expected = torch.tanh(model.projection(states)) * 8**0.5
    torch.testing.assert_close(model.hidden(target=IDS), expected)


def test_attention_agrees_with_a_loop():
    model = _model(has_attention=True)
    states, _ = model.lstm(model.output.weight[IDS] * 8**0.5)
    last = states[0, 4]
    weights = torch.softmax(torch.stack([model.attention(last) @ states[0, s] for s in range(5)]), 0)
    context = sum(weights[s] * states[0, s] for s in range(5))
    expected = torch.tanh(model.projection(torch.cat([context, last]))) * 8**0.5
    torch.testing.assert_close(model.hidden(target=IDS)[0, 4], expected)


@pytest.mark.parametrize("has_attention", [False, True])
def test_it_is_causal_and_ignores_padding(has_attention):
    model = _model(has_attention)
    changed = IDS.clone()
    changed[:, 5:] = PAD
    before = model.hidden(target=IDS)
    after = model.hidden(target=changed, target_is_real=changed != PAD)
    torch.testing.assert_close(before[:, :5], after[:, :5])


@pytest.mark.parametrize("has_attention", [False, True])
def test_it_is_as_large_as_the_transformer(has_attention):
    transformer = make_model(SETUP, seed=1)
    recurrent = as_lstm(transformer, has_attention=has_attention)
    assert recurrent.n_parameters == pytest.approx(transformer.n_parameters, rel=0.02)


def test_a_source_is_refused():
    with pytest.raises(TypeError, match="target only"):
        _model(has_attention=False).hidden(IDS)


def test_recall_asks_for_a_record_that_is_there():
    task = Recall(distance=5, n_keys=4, n_values=3, n_records=2, n_noise=6)
    batch = task.batch(16, Generator().manual_seed(1))
    first_record, first_noise = 1 + 3 + 4, 1 + 3 + 4 + 12
    assert batch.target.shape == (16, 2 + 5 + 1)
    for row, expected, counted in zip(batch.target, batch.expected, batch.is_counted, strict=True):
        records = dict(divmod(int(token) - first_record, 3) for token in row[:2])
        assert len(records) == 2
        assert (row[2:-1] >= first_noise).all() and (row[2:-1] < task.vocab_size).all()
        assert int(expected[-1]) == 1 + records[int(row[-1]) - 4]
        assert counted.tolist() == [False] * 7 + [True]


def test_the_far_gradient_of_an_lstm_shrinks_with_distance():
    near, far = (
        SETUP.changed({"task": Recall(distance=k), "alter": lambda model: as_lstm(model, has_attention=False)})
        for k in (2, 32)
    )
    assert far_gradient(make_model(far, 1), far, 1) < 0.1 * far_gradient(make_model(near, 1), near, 1)


def test_probes_leave_no_gradient_behind():
    model = make_model(SETUP, 1)
    assert far_gradient(model, SETUP, 1) > 0
    assert step_seconds(model, SETUP, 1) > 0
    assert all(one.grad is None for one in model.parameters())
    assert not any(module._forward_hooks for module in model.modules())
    batch = SETUP.task.batch(4, Generator().manual_seed(1))
    assert counted_logits(model, batch).shape == (4, SETUP.task.vocab_size)
