"""The native engine's limits: memory that runs out, arguments out of range, and inputs that crashed it once."""

import ctypes
import gc
import os
import signal
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from manyheads.decode import DecodeSettings, TorchEngine
from manyheads.decode.native import compilation, loading
from manyheads.decode.native import native_engine as engine
from manyheads.decode.native.model_packing import pack_groups, pack_settings, pack_tensors
from manyheads.decode.native.native_engine import NativeEngine, make_native
from manyheads.errors import EngineError

from decode.test_native import SEARCHES, SPECIAL_TOKENS, compare, make_model, make_sources
from needs import needs_compiler

pytestmark = needs_compiler


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """A library whose allocations fail on request and are counted."""
    path = tmp_path_factory.mktemp("failing") / "engine.so"
    assert compilation.compile_library(loading.find_compiler(), ("-O1", "-DMH_TEST_ALLOCATION"), path) == ""
    library = ctypes.CDLL(str(path))
    library.mh_fail_allocation_after.argtypes = [ctypes.c_int64]
    library.mh_live_allocations.restype = ctypes.c_int64
    return library


def _count_failures(library: ctypes.CDLL, act: Callable[[], object]) -> int:
    """Repeat `act` with a failing first, second, … allocation until it succeeds; return the number of failures."""
    for n in range(10_000):
        library.mh_fail_allocation_after(n)
        try:
            act()
        except EngineError as error:
            assert "ran out of memory" in str(error)
        else:
            library.mh_fail_allocation_after(-1)
            return n
    raise AssertionError("It never succeeds.")


@pytest.mark.parametrize("is_int8", [False, True])
def test_every_failing_allocation_is_one_clear_error(
    is_int8: bool, failing: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "_n_threads", lambda: 1)
    model, sources = make_model(positions="rotary"), make_sources(12)
    expected = make_native(model, SPECIAL_TOKENS, is_int8=is_int8).generate(sources, SEARCHES["n-best"], range(12))
    made: list[NativeEngine] = []

    def make() -> None:
        made.append(NativeEngine(model, SPECIAL_TOKENS, failing, is_int8=is_int8))

    assert _count_failures(failing, make) > 60  # each matrix alone has two
    n_held = failing.mh_live_allocations()
    found: list[object] = []

    def generate() -> None:
        found[:] = made[0].generate(sources, SEARCHES["n-best"], range(12))

    assert _count_failures(failing, generate) > 60
    assert [[one.ids for one in own] for own in found] == [[one.ids for one in own] for own in expected]  # type: ignore[attr-defined]
    assert failing.mh_live_allocations() == n_held
    made.clear()
    gc.collect()
    assert failing.mh_live_allocations() == 0


@pytest.mark.parametrize("is_int8", [False, True])
def test_values_wider_than_every_other_input_fit(is_int8: bool) -> None:
    """The 8-bit rows of W^O's input, n_heads × value_width numbers, once did not fit: a heap overflow."""
    shape = {"n_heads": 8, "n_key_heads": 1, "head_width": 8, "value_width": 64}
    model = make_model(width=64, feed_forward_width=128, vocab_size=61, max_length=64, **shape)
    random = np.random.default_rng(2)
    sources = [random.integers(4, 61, size=40).tolist() for _ in range(64)]
    settings = DecodeSettings(method="greedy", max_new_tokens=40)
    for _ in range(3):
        found = make_native(model, SPECIAL_TOKENS, is_int8=is_int8).generate(sources, settings, range(64))
    if not is_int8:
        expected = TorchEngine(model, SPECIAL_TOKENS).generate(sources, settings, range(64))
        assert [one.ids for (one,) in found] == [one.ids for (one,) in expected]
    assert all(one.ids for (one,) in found)


@pytest.mark.parametrize("search", ["greedy", "n-best"])
def test_a_forbidden_token_may_lead_by_any_margin(search: str) -> None:
    """e^(lead) overflows beyond a lead of 88, which once made every hypothesis empty."""
    model = make_model(tie_output=False, norm_placement="pre")
    with torch.no_grad():  # every decoder output has a component along the last norm's bias
        direction = torch.randn(32)
        model.decoder_norm.bias.copy_(direction * 10)  # type: ignore[union-attr]
        model.output.weight[0] = direction
    sources = make_sources(5)
    logits = model.output.logits(model.decoder_norm.bias.detach()[None, None])[0, 0]  # type: ignore[union-attr]
    assert logits[0] - logits[1:].max() > 88
    (found, *_) = make_native(model, SPECIAL_TOKENS).generate(sources, SEARCHES[search], range(5))
    assert found[0].ids
    assert found[0].log_probability < -88
    compare(model, [SEARCHES[search]])


def test_more_beams_than_the_engine_has_are_an_error() -> None:
    native = make_native(make_model(), SPECIAL_TOKENS)
    with pytest.raises(EngineError, match=r"1 to 64 beams, not decode.beam = 65"):
        native.generate([[5, 3]], DecodeSettings(beam=65), [0])
    with pytest.raises(EngineError, match="does not sample"):
        native.generate([[5, 3]], DecodeSettings(method="sample"), [0])
    unchecked = DecodeSettings(beam=2)
    object.__setattr__(unchecked, "n_best", 3)
    with pytest.raises(EngineError, match=r"decode.n_best = 3 must be between 1 and decode.beam = 2"):
        native.generate([[5, 3]], unchecked, [0])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"beam": 0}, "beam = 0 is not between 1 and 64"),
        ({"beam": 65}, "beam = 65 is not between 1 and 64"),
        ({"n_best": 5}, "n_best = 5 is not between 1 and beam = 4"),
        ({"n_best": 0}, "n_best = 0 is not between"),
        ({"max_rows": 0}, "max_rows = 0"),
        ({"length_penalty": float("nan")}, "length_penalty = nan"),
        ({"n_sentences": -1}, "-1 sentences"),
        ({"n_ids": 4}, "source 0 does not have 1 to 40 tokens"),
        ({"n_ids": 6}, "sources do not have 6 ids"),
        ({"answers_size": 5}, "sentence 0 needs space for"),
        ({"n_forbidden": -1}, "-1 forbidden"),
        ({"n_outputs": 62}, "62 listed ids for 61 tokens"),
        ({"starts": [0, 0]}, "source 0 does not have 1 to 40 tokens"),
        ({"starts": [1, 5]}, "does not start at 0"),
        ({"limits": [0]}, "limit 0 = 0 is not between 1 and 40"),
        ({"limits": [41]}, "limit 0 = 41 is not between 1 and 40"),
        ({"ids": [5, 6, 7, 61, 3]}, "id 61 is not between 0 and 60"),
        ({"ids": [5, 6, 7, -1, 3]}, "id -1 is not between 0 and 60"),
        ({"forbidden": [0, 1, 61]}, "forbidden ids are not strictly ascending"),
        ({"outputs": [3, 3], "n_outputs": 2}, "listed ids are not strictly ascending"),
        ({"outputs": [3, 61], "n_outputs": 2}, "listed ids are not strictly ascending"),
        ({"answer_starts": [0, 3]}, "sentence 0 needs space for"),
    ],
)
def test_the_library_checks_every_argument_itself(changes: dict[str, object], message: str) -> None:
    native = make_native(make_model(), SPECIAL_TOKENS)
    part = native._part([0], [[5, 6, 7, 8, 3]], [9], DecodeSettings(), np.zeros(1, dtype=np.int32))
    kept = []
    for name, value in changes.items():
        if isinstance(value, list):
            is_long = name in ("starts", "answer_starts")
            array = np.array(value, dtype=np.int64 if is_long else np.int32)
            kept.append(array)
            value = engine._at(array, engine._int64 if is_long else engine._int32)
        setattr(part.job, name, value)
    with pytest.raises(EngineError, match=message):
        native._run(part)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"head_width": 0}, "head_width = 0 is not between 1 and"),
        ({"vocab_size": 2**30}, "vocab_size = 1073741824 is not between"),
        ({"bos": 61}, "bos = 61 is not between 0 and 60"),
        ({"eos": -1}, "eos = -1 is not between 0 and 60"),
        ({"activation": 4}, "activation = 4 is not between 0 and 3"),
        ({"epsilon": float("nan")}, "epsilon = nan"),
        ({"width": 33}, r"tensor 0 has 1952 elements; expected 2013"),
        ({"positions": 1}, "tensor 6 has 0 elements; expected 160"),
        ({"n_decoder_layers": 1}, "tensor 59 has 3072 elements; expected 32"),
        ({"n_decoder_layers": 3}, "head counts are too few"),
        ({"value_width": 2**24}, "an attention has 4 heads of width 8 and 16777216"),
    ],
)
def test_the_library_checks_every_setting_itself(changes: dict[str, float], message: str) -> None:
    model = make_model()
    settings = pack_settings(model.settings, bos=2, eos=3, is_int8=False)
    for name, value in changes.items():
        setattr(settings, name, value)
    with pytest.raises(EngineError, match=message):
        engine._new_model(
            engine._declare(loading.library()), settings, pack_tensors(model), pack_groups(model.settings)
        )


def test_tensors_and_counts_that_are_missing_are_named() -> None:
    model, library = make_model(), engine._declare(loading.library())
    settings = pack_settings(model.settings, bos=2, eos=3, is_int8=False)
    tensors, groups = pack_tensors(model), pack_groups(model.settings)
    with pytest.raises(EngineError, match=f"{len(tensors) - 1} tensors are too few"):
        engine._new_model(library, settings, tensors[:-1], groups)
    with pytest.raises(EngineError, match=f"{len(tensors) + 1} tensors were passed; expected {len(tensors)}"):
        engine._new_model(library, settings, [*tensors, tensors[0]], groups)
    with pytest.raises(EngineError, match=f"{len(groups) - 1} head counts are too few"):
        engine._new_model(library, settings, tensors, groups[:-1])
    with pytest.raises(EngineError, match=f"{len(groups) + 1} head counts were passed; expected {len(groups)}"):
        engine._new_model(library, settings, tensors, np.append(groups, np.int32(1)))
    wrong = groups.copy()
    wrong[1] = -1
    with pytest.raises(EngineError, match="head count 1 is -1"):
        engine._new_model(library, settings, tensors, wrong)


def test_structures_of_another_size_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Longer(ctypes.Structure):
        _fields_ = [*engine._Job._fields_, ("more", ctypes.c_int64)]

    monkeypatch.setattr(engine, "_Job", Longer)
    with pytest.raises(EngineError, match="does not match this version of manyheads: Longer has"):
        engine._declare(loading.library())


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("is_int8", [False, True])
def test_weights_that_are_not_finite_do_not_crash(value: float, is_int8: bool) -> None:
    model = make_model()
    with torch.no_grad():
        model.output.weight[7] = value
        next(iter(model.encoder)).feed_forward.inner.weight[3, 4] = value  # type: ignore[union-attr]
    found = make_native(model, SPECIAL_TOKENS, is_int8=is_int8).generate(make_sources(9), SEARCHES["n-best"], range(9))
    assert len(found) == 9


def test_forbidding_many_tokens_of_a_large_vocabulary_does_not_use_the_stack() -> None:
    model = make_model(
        vocab_size=600_000, width=4, n_heads=1, feed_forward_width=4, n_encoder_layers=1, n_decoder_layers=1
    )
    special_tokens = replace(SPECIAL_TOKENS, forbidden=tuple(range(3)) + tuple(range(10, 600_000)))
    (found,) = make_native(model, special_tokens).generate([[5, 3]], SEARCHES["greedy"], [0])
    assert set(found[0].ids) <= set(range(3, 10))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="only POSIX has fork")
def test_a_fork_decodes_with_threads_of_its_own() -> None:
    """A server answers long texts in a fork; the threads of the parent's pool are not there."""
    native, sources = make_native(make_model(), SPECIAL_TOKENS), make_sources(4)
    settings = DecodeSettings(method="greedy", max_new_tokens=3)
    expected = native.generate(sources, settings, range(4))  # starts the parent's threads
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        os._exit(0 if native.generate(sources, settings, range(4)) == expected else 1)
    assert os.waitpid(pid, 0)[1] == 0


def test_cores_are_not_counted_for_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads files, before every batch of a server."""
    counted: list[int] = []

    def count_cores() -> int:
        counted.append(1)
        return 4

    monkeypatch.setattr(engine, "count_cores", count_cores)
    for wanted, expected in (("1", 1), ("0", 1), ("3", 3), ("9", 4), ("", 4), ("all", 4)):
        monkeypatch.setenv("OMP_NUM_THREADS", wanted)
        assert engine._n_threads() == expected
    assert len(counted) == 4
