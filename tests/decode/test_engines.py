"""Engine selection: fallbacks are logged once, and a changed model is never decoded with its old weights."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from manyheads.bundle import load
from manyheads.compress.head_removal import remove_heads
from manyheads.decode import ENGINES, DecodeSettings, EngineSelector, SpecialTokens, TorchEngine
from manyheads.errors import EngineError
from manyheads.model import Transformer, gated

from decode.conftest import Messages
from decode.test_native import SEARCHES, make_model, make_sources
from needs import needs_compiler

SPECIAL_TOKENS = SpecialTokens(bos=2, eos=3, pad=0, forbidden=(0, 1))
BEAM = SEARCHES["beam"]


def assert_current(selector: EngineSelector, model: Transformer, engine: str) -> None:
    """The selected engine is this one, and generates what the model itself generates now."""
    sources = make_sources(4)
    selected = selector.select(model, SPECIAL_TOKENS, BEAM)
    assert selected.name == selector.used == engine
    found = selected.generate(sources, BEAM, range(4))
    expected = TorchEngine(model, SPECIAL_TOKENS).generate(sources, BEAM, range(4))
    assert [[one.ids for one in row] for row in found] == [[one.ids for one in row] for row in expected]


def zero_a_matrix(model: Transformer) -> None:
    with torch.no_grad():
        model.decoder[0].cross_attention.output.weight.zero_()


def replace_a_parameter(model: Transformer) -> None:
    linear = model.decoder[0].feed_forward.outer
    linear.weight = nn.Parameter(torch.randn_like(linear.weight))


def replace_a_module(model: Transformer) -> None:
    model.decoder[0] = deepcopy(make_model(seed=9).decoder[0])


def load_other_weights(model: Transformer) -> None:
    model.load_state_dict(make_model(seed=8).state_dict())


def change_the_type(model: Transformer) -> None:
    model.to(torch.bfloat16)


def assign_data(model: Transformer) -> None:
    weight = model.decoder[1].feed_forward.inner.weight
    weight.data = torch.randn_like(weight)


@pytest.mark.parametrize(
    "change",
    [zero_a_matrix, replace_a_parameter, replace_a_module, load_other_weights, change_the_type, assign_data],
    ids=lambda change: change.__name__,
)
@needs_compiler
def test_changed_weights_are_packed_again(change: Callable[[Transformer], None], messages: Messages) -> None:
    model, selector = make_model(seed=5), EngineSelector("native")
    assert_current(selector, model, "native")
    before = selector.select(model, SPECIAL_TOKENS, BEAM).generate(make_sources(4), BEAM, range(4))
    change(model)
    if change is change_the_type:  # bfloat16 rounds differently from the float32 sums of the native engine
        engine = selector.select(model, SPECIAL_TOKENS, BEAM)
        fresh = ENGINES["native"](model, SPECIAL_TOKENS, is_int8=False, shortlist=None)
        sources = make_sources(4)
        assert engine.generate(sources, BEAM, range(4)) == fresh.generate(sources, BEAM, range(4))
    else:
        assert_current(selector, model, "native")
    assert selector.select(model, SPECIAL_TOKENS, BEAM).generate(make_sources(4), BEAM, range(4)) != before
    assert messages() == ["The model has changed: its weights are copied again."]


@needs_compiler
def test_an_unchanged_model_is_packed_once() -> None:
    model, selector = make_model(), EngineSelector("native")
    first = selector.select(model, SPECIAL_TOKENS, BEAM)
    assert selector.select(model, SPECIAL_TOKENS, SEARCHES["greedy"]) is first
    selector.reset()  # needed after a change through Tensor.data, which PyTorch does not count
    assert selector.select(model, SPECIAL_TOKENS, BEAM) is not first


@needs_compiler
def test_a_gated_model_is_decoded_by_torch(messages: Messages) -> None:
    model, selector = make_model(seed=5), EngineSelector("auto")
    assert_current(selector, model, "native")
    for _ in range(2):
        with gated(model, {"decoder.1.cross": torch.zeros(4)}):
            assert_current(selector, model, "torch")
            assert selector.fallback == "The native engine cannot run a model with gated heads."
    assert_current(selector, model, "native")
    assert selector.fallback is None
    assert messages() == []  # worth a line for many texts only


@needs_compiler
def test_a_hooked_model_is_decoded_by_torch(messages: Messages) -> None:
    model, selector = make_model(seed=5), EngineSelector("native")
    hook = model.decoder[0].register_forward_hook(lambda module, inputs, output: output * 0.5)
    assert_current(selector, model, "torch")
    hook.remove()
    assert_current(selector, model, "native")
    assert messages() == ["Engine: torch. The native engine cannot run a model with hooks."]


@needs_compiler
def test_another_model_is_packed() -> None:
    selector = EngineSelector("native")
    for seed in (1, 2, 1):
        assert_current(selector, make_model(seed=seed), "native")


@needs_compiler
def test_a_bundle_whose_task_was_replaced_decodes_with_the_new_model(bundle_folder: Path) -> None:
    texts = ["The dog sleeps.", "A small cat reads."]
    loaded = load(bundle_folder, engine="native")
    before = loaded.predict(texts, max_new_tokens=8)
    for task in (
        replace(loaded.task, model=make_other(loaded.task.model)),  # type: ignore[type-var]
        remove_heads(loaded.task, ["decoder.0.cross/0"]),
    ):
        changed = replace(loaded, task=task)
        expected = [prediction.answer for prediction in task.predict(texts, replace(loaded.decode, max_new_tokens=8))]
        assert changed.predict(texts, max_new_tokens=8) == expected
        assert changed.engine.used == "native"
    assert loaded.predict(texts, max_new_tokens=8) == before


def make_other(model: Transformer) -> Transformer:
    torch.manual_seed(77)
    return Transformer(model.settings).eval()


@needs_compiler
def test_sampling_falls_back_to_torch_and_is_reported_once(messages: Messages) -> None:
    model, selector = make_model(), EngineSelector("native")
    for _ in range(2):
        assert selector.select(model, SPECIAL_TOKENS, DecodeSettings(method="sample")).name == "torch"
    assert selector.select(model, SPECIAL_TOKENS, BEAM).name == "native"
    assert messages() == ["Engine: torch. The native engine does not support sampling."]


def test_torch_can_be_requested() -> None:
    assert_current(EngineSelector("torch"), make_model(), "torch")


def test_an_unknown_engine_is_refused_with_a_suggestion() -> None:
    with pytest.raises(EngineError, match=r'^engine = "natve" is not an engine\. Did you mean native\?$'):
        EngineSelector("natve")
    with pytest.raises(EngineError, match=r'"ctranslate2" is not an engine\. Known: auto, native, torch\.$'):
        EngineSelector("ctranslate2")


def test_weights_made_in_inference_mode_are_decoded_by_torch() -> None:
    with torch.inference_mode():
        model = make_model()
    assert_current(EngineSelector("native"), model, "torch")
