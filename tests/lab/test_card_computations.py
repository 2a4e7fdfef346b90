"""Every printed digit of the cards' computations, recomputed with numpy or by hand."""

import math
import re

import numpy as np
import pytest

from manyheads.errors import LabError
from manyheads.lab.card_computations import COMPUTATIONS, computed, fill_computed
from manyheads.lab.lab_texts import LabText


def numbers(text: str) -> list[float]:
    """The numbers in a text."""
    plain = text.replace("−", "-").replace("e-", "E-")
    return [float(one.replace(",", "")) for one in re.findall(r"-?\d[\d,]*\.?\d*(?:E-\d+)?(?![\d.])", plain)]


def vector(group: str, name: str) -> list[float]:
    return [float(one.replace("−", "-").replace(",", "")) for one in computed(group, name).strip("[]").split(", ")]


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def is_shown(shown: list[float], exact: np.ndarray | list[float], digits: int = 3) -> bool:
    return shown == [round(float(one), digits) + 0.0 for one in np.ravel(exact)]


def test_attention_of_one_query():
    weights = softmax(np.array([1.0, 2.0, 3.0]) / math.sqrt(2))
    assert is_shown(vector("one-query", "weights"), weights)
    assert is_shown(vector("one-query", "output"), weights @ np.array([[10, 0], [0, 10], [5, 5]]))


def test_the_3_by_3_example_is_saturated_not_uniform():
    x = np.arange(1.0, 10.0).reshape(3, 3)
    q, k = x @ x, x @ x.T
    scores = q @ k.T / math.sqrt(3)
    assert computed("three-by-three", "weights") == "[0, 0, 1], [0, 0, 1], [0, 0, 1]"
    assert is_shown(vector("three-by-three", "scores"), scores[0], 0)
    assert computed("three-by-three", "gap") == f"{scores[0, 2] - scores[0, 1]:,.0f}"
    assert vector("three-by-three", "output") == [50, 194, 122]


def test_softmax_ignores_a_common_shift_and_division_by_the_sum_gives_negative_weights():
    assert is_shown(vector("softmax", "weights"), softmax(np.array([2.0, 1.0, -1.0])))
    assert computed("softmax", "shifted") == computed("softmax", "weights")
    assert vector("softmax", "divided") == [1.0, 0.5, -0.5]
    assert is_shown(vector("softmax", "doubled"), softmax(np.array([4.0, 2.0, -2.0])))


def test_tied_projections_are_symmetric_and_not_the_identity():
    assert computed("tied", "forward") != computed("tied", "backward")
    assert computed("tied", "tied-forward") == computed("tied", "tied-backward")
    assert float(computed("tied", "self")) < float(computed("tied", "other"))
    assert float(computed("tied", "self")) + float(computed("tied", "other")) == pytest.approx(1.0)


def test_scores_and_weights_of_tied_projections():
    x, w_q, w_k = np.array([[1, 0], [2, 1]]), np.array([[1, 0], [1, 1]]), np.array([[2, 1], [1, 0]])
    separate, together = (x @ w_q) @ (x @ w_k).T, (x @ w_q) @ (x @ w_q).T
    weights = softmax(together[0] / math.sqrt(2))
    shown = [computed("tied", name) for name in ("forward", "backward", "tied-forward", "self", "other")]
    exact = [separate[0, 1], separate[1, 0], together[0, 1]]
    assert shown == [*map(str, exact), *(f"{weight:.3f}" for weight in weights)]


def test_positions_that_see_each_other():
    pairs = [(query, key) for query in range(6) for key in range(6)]
    n_causal = sum(key <= query for query, key in pairs)
    shown = [computed("views", name) for name in ("bidirectional", "causal", "last", "cross")]
    assert shown == [str(len(pairs)), str(n_causal), "6", str(6 * 5)]


def test_zeroing_after_the_softmax_loses_weight_and_still_sees_the_hidden_score():
    assert is_shown(vector("masks", "before"), [*softmax(np.array([2.0, 1.0])), 0.0])
    everything = softmax(np.array([2.0, 1.0, 3.0]))
    assert is_shown(vector("masks", "after"), [*everything[:2], 0.0])
    assert computed("masks", "after-sum") == f"{everything[:2].sum():.3f}"
    assert computed("masks", "before-louder") == computed("masks", "before")
    assert computed("masks", "after-louder") != computed("masks", "after")
    assert computed("masks", "all-hidden") == "[NaN, NaN, NaN]"


def test_heads_cost_the_same_and_sum_to_their_number():
    assert {computed("multi-head", f"parameters-{n}") for n in (1, 8, 16)} == {f"{4 * 512**2:,}"}
    assert {computed("multi-head", f"products-{n}") for n in (1, 8, 16)} == {f"{2 * 100**2 * 512:,}"}
    assert (computed("multi-head", "one-head-sum"), computed("multi-head", "all-heads-sum")) == ("1.0", "8.0")
    concat, first, second = (np.array(vector("multi-head", name)) for name in ("concat", "first", "second"))
    assert (concat == first + second).all()
    assert first.tolist() == [1, 2] and second.tolist() == [5, 4]  # [1, 2] and [3, −1] times the halves of W^O


def test_only_layer_norm_ignores_padding_and_neighbors():
    token = np.array([1.0, 2.0, 3.0, 6.0])
    expected = (token - 3.0) / math.sqrt(3.5)
    for batch in ("alone", "padded", "with-other"):
        assert is_shown(vector("norms", f"layer-{batch}"), expected, 2)
    assert (computed("norms", "mean"), computed("norms", "variance")) == ("3.0", "3.5")
    assert is_shown(vector("norms", "rms-alone"), token / math.sqrt((token**2).mean()), 2)
    sample = np.array([[1, 2, 3, 6], [5, 4, 1, 2]], dtype=float)
    assert is_shown(vector("norms", "sample-alone"), (sample[0] - sample.mean()) / sample.std(), 2)
    padded = np.vstack([sample, np.zeros(4)])
    assert is_shown(vector("norms", "sample-padded"), (padded[0] - padded.mean()) / padded.std(), 2)
    batch = np.vstack([sample, [[9, 0, 4, 3], [7, 8, 0, 1]]])
    assert is_shown(vector("norms", "batch-with-other"), (batch[0] - batch.mean(0)) / batch.std(0), 2)
    assert computed("norms", "batch-padded") == computed("norms", "batch-alone")
    assert computed("norms", "layer-shifted") == computed("norms", "layer-alone")
    assert computed("norms", "rms-shifted") != computed("norms", "rms-alone")


def test_without_positions_a_reversed_input_gives_reversed_outputs():
    assert computed("order", "none") == "0.00"
    assert float(computed("order", "sinusoidal")) > 0.1


def test_rotary_scores_depend_on_the_distance_only():
    q, k = np.array([1 + 2j, 0 + 1j]), np.array([2 + 1j, 1 + 0j])  # pairs of components as complex numbers
    turn = np.exp(1j * 2 * np.array([1.0, 10_000**-0.5]))
    expected = (q * turn * k.conj()).real.sum()
    for pair in ("3-1", "10-8", "103-101"):
        assert numbers(computed("rotary", pair)) == [round(expected, 3)]
    assert computed("rotary", "3-2") != computed("rotary", "3-1")
    assert computed("rotary", "0-0") == "4.000"


def test_embeddings_and_sinusoids_at_width_512():
    assert computed("embedding", "component") == f"{512**-0.5:.3f}"
    assert computed("embedding", "factor") == f"{512**0.5:.1f}"
    assert computed("embedding", "sinusoid-length") == f"{math.sqrt(256):.0f}"  # 256 pairs with sin² + cos² = 1
    assert computed("embedding", "sinusoid-component") == f"{math.sqrt(0.5):.2f}"


def test_tying_saves_two_of_three_matrices():
    tied, free, matrix = (float(computed("tying", name)) for name in ("tied", "free", "matrix"))
    assert free - tied == pytest.approx(2 * matrix, abs=0.11)
    assert computed("tying", "matrix") == f"{37_000 * 512 / 1e6:.1f}"
    assert computed("tying", "share") == f"{100 * 2 * 37_000 * 512 / (free * 1e6):.0f}"


def test_targets_of_label_smoothing():
    assert vector("smoothing", "target") == [0.025, 0.025, 0.9, 0.025, 0.025]
    assert vector("smoothing", "pytorch") == [0.02, 0.02, 0.92, 0.02, 0.02]
    assert computed("smoothing", "lowest-loss") == f"{-0.9 * math.log(0.9) - 0.1 * math.log(0.025):.3f}"
    assert computed("smoothing", "best-gap") == f"{math.log(0.9 / 0.025):.2f}"


def test_learning_rates_of_2017():
    for step in (1, 4000, 16_000, 100_000):
        exact = 512**-0.5 * min(step**-0.5, step * 4000**-1.5)
        assert numbers(computed("warm-up", f"step-{step}")) == [pytest.approx(exact, rel=0.05)]


def test_beam_search_finds_what_greedy_misses():
    assert (computed("beam", "greedy"), computed("beam", "beam")) == ("0.24", "0.36")
    assert numbers(computed("beam", "score-5")) == [round(-4 / (10 / 6) ** 0.6, 2)]
    assert numbers(computed("beam", "score-10")) == [round(-5 / (15 / 6) ** 0.6, 2)]


def test_sampling_cuts_and_renormalizes():
    plain = softmax(np.array([3.0, 2.0, 1.0, 0.0]))
    assert is_shown(vector("sampling", "plain"), plain, 2)
    assert is_shown(vector("sampling", "cold"), softmax(np.array([6.0, 4.0, 2.0, 0.0])), 2)
    assert is_shown(vector("sampling", "top-k"), [*(plain[:2] / plain[:2].sum()), 0, 0], 2)
    assert is_shown(vector("sampling", "top-p"), [*(plain[:3] / plain[:3].sum()), 0], 2)


def test_costs():
    assert computed("cost", "share-1024") == "50"  # n = 2 d: both parts are equal
    assert computed("cost", "memory-8192") == f"{8 * 8192**2 * 4 / 2**20:,.0f}"
    assert computed("kv-cache", "all") == f"{2 * 32 * 32 * 128 * 4096 * 2 / 2**30:.2f}"
    assert computed("kv-cache", "without") == f"{sum(range(1001)):,}"
    assert computed("feed-forward", "share") == "67"
    shown = [computed("feed-forward", name) for name in ("attention", "network", "layer", "layer-with-cross")]
    assert shown == [f"{n * 512**2:,}" for n in (4, 8, 12, 16)]


def test_a_feed_forward_network_changes_its_own_token_only():
    assert re.fullmatch(r"\d\.\d\d", computed("feed-forward", "own-change"))
    assert float(computed("feed-forward", "own-change")) > 0.1
    assert computed("feed-forward", "other-change") == "0.00"


def test_dropout_keeps_the_mean():
    assert (computed("dropout", "kept"), computed("dropout", "mean")) == (f"{1 / 0.9:.3f}", "1.0")


def test_every_group_computes_and_unknown_names_are_refused():
    for group, compute in COMPUTATIONS.items():
        assert compute(), group
    for name in ("{{computed softmax nothing}}", "{{computed nothing weights}}"):
        with pytest.raises(LabError, match="does not exist"):
            fill_computed(LabText({"en": name}))
