"""Shortlists: only listed tokens are generated, and a list of all tokens changes nothing."""

import numpy as np
import pytest
import torch

from manyheads.decode import DecodeSettings, EngineSelector, Hypothesis, Shortlist, TorchEngine
from manyheads.decode.native.native_engine import make_native
from manyheads.errors import BundleError
from manyheads.model import Transformer

from decode.test_native import SEARCHES, SPECIAL_TOKENS, make_model, make_sources
from needs import needs_compiler

V = 61


def make_shortlist(seed: int = 0) -> Shortlist:
    random = np.random.default_rng(seed)
    return Shortlist.from_lists([random.integers(0, V, size=3).tolist() for _ in range(V)], [0, 2, 7, 11])


def test_allowed_is_the_union_over_the_sources() -> None:
    shortlist = Shortlist.from_lists([[], [5, 4], [9], [4, 8], *[[]] * 6], always=[7, 1])
    assert shortlist.allowed(np.array([1, 3, 1], dtype=np.int32)).tolist() == [1, 4, 5, 7, 8]
    assert shortlist.allowed(np.array([0], dtype=np.int32)).tolist() == [1, 7]


@pytest.mark.parametrize("is_int8", [False, True])
@pytest.mark.parametrize("search", ["greedy", "n-best", "wider than the vocabulary"])
@needs_compiler
def test_a_list_of_all_tokens_changes_nothing(search: str, is_int8: bool) -> None:
    model, sources, settings = make_model(), make_sources(), SEARCHES[search]
    everything = Shortlist.from_lists([[]] * V, range(V))
    whole = make_native(model, SPECIAL_TOKENS, is_int8=is_int8)
    listed = make_native(model, SPECIAL_TOKENS, is_int8=is_int8, shortlist=everything)
    rows = range(len(sources))
    assert listed.generate(sources, settings, rows) == whole.generate(sources, settings, rows)  # to the last bit


@pytest.mark.parametrize("changes", [{}, {"width": 38, "n_heads": 2}])
@needs_compiler
def test_probabilities_are_normalized_over_the_list(changes: dict[str, int]) -> None:
    model, shortlist, settings = make_model(**changes), make_shortlist(), SEARCHES["greedy"]
    listed = make_native(model, SPECIAL_TOKENS, shortlist=shortlist)
    for source in make_sources(8):
        ids = np.union1d(shortlist.allowed(np.array(source, dtype=np.int32)), [SPECIAL_TOKENS.eos])
        (found,) = listed.generate([source], settings, [0])
        assert set(found[0].ids) <= set(ids.tolist()) - set(SPECIAL_TOKENS.forbidden)
        others = tuple(set(range(V)) - set(ids.tolist()))
        special_tokens = type(SPECIAL_TOKENS)(
            SPECIAL_TOKENS.bos, SPECIAL_TOKENS.eos, SPECIAL_TOKENS.pad, (*SPECIAL_TOKENS.forbidden, *others)
        )
        (expected,) = TorchEngine(model, special_tokens).generate([source], settings, [0])
        assert found[0].ids == expected[0].ids
        assert found[0].log_probability == pytest.approx(_among(model, source, found[0], ids), abs=1e-4)


def _among(
    model: Transformer, source: list[int], found: Hypothesis, ids: "np.ndarray[tuple[int], np.dtype[np.int64]]"
) -> float:
    """The log-probability of a hypothesis if only these ids exist."""
    written = [*found.ids, *([SPECIAL_TOKENS.eos] if found.finished else [])]
    with torch.inference_mode():
        hidden = model.hidden(torch.tensor([source]), torch.tensor([[SPECIAL_TOKENS.bos, *written[:-1]]]))
        logs = model.output.logits(hidden)[0][:, torch.from_numpy(ids)].log_softmax(-1)
    return sum(float(logs[position, ids.tolist().index(id)]) for position, id in enumerate(written))


@pytest.mark.parametrize("is_int8", [False, True])
@needs_compiler
def test_sentences_of_one_call_share_their_list(is_int8: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("manyheads.decode.native.native_engine._n_threads", lambda: 1)
    model, shortlist, sources = make_model(), make_shortlist(3), make_sources(5)
    together = np.union1d(
        shortlist.allowed(np.array([id for one in sources for id in one], dtype=np.int32)), [SPECIAL_TOKENS.eos]
    )
    same = Shortlist.from_lists([[]] * V, together.tolist())
    found = [
        make_native(model, SPECIAL_TOKENS, is_int8=is_int8, shortlist=one).generate(sources, SEARCHES["beam"], range(5))
        for one in (shortlist, same)
    ]
    assert found[0] == found[1]
    assert {id for row in found[0] for one in row for id in one.ids} <= set(together.tolist())


@needs_compiler
def test_a_shortlist_out_of_range_is_refused() -> None:
    with pytest.raises(BundleError, match="for 60 tokens, the model has 61"):
        make_native(make_model(), SPECIAL_TOKENS, shortlist=Shortlist.from_lists([[]] * 60, []))
    for wrong in (61, -1):
        with pytest.raises(BundleError, match="indices out of range"):
            make_native(make_model(), SPECIAL_TOKENS, shortlist=Shortlist.from_lists([[wrong]] * V, []))
    with pytest.raises(BundleError, match="has no array 'token_ids'"):
        Shortlist.from_arrays({"always": np.zeros(1), "starts": np.zeros(1)})


def test_torch_ignores_the_shortlist() -> None:
    model, sources = make_model(), make_sources(3)
    engine = EngineSelector("torch", shortlist=make_shortlist()).select(model, SPECIAL_TOKENS, DecodeSettings())
    whole = TorchEngine(model, SPECIAL_TOKENS).generate(sources, SEARCHES["beam"], range(3))
    assert engine.generate(sources, SEARCHES["beam"], range(3)) == whole
