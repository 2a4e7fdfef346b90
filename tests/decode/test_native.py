"""The native engine generates the same tokens as the torch engine, for every setting that it supports."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from manyheads.decode import DecodeSettings, SpecialTokens, TorchEngine
from manyheads.decode.native import native_engine
from manyheads.decode.native.native_engine import make_native
from manyheads.errors import DataError, EngineError
from manyheads.model import ModelSettings, Transformer

from needs import needs_compiler

pytestmark = needs_compiler
SPECIAL_TOKENS = SpecialTokens(bos=2, eos=3, pad=0, forbidden=(0, 1, 2))


def make_model(seed: int = 0, **changes: object) -> Transformer:
    torch.manual_seed(seed)
    settings = {
        "vocab_size": 61, "width": 32, "n_encoder_layers": 2, "n_decoder_layers": 2, "feed_forward_width": 48,
        "n_heads": 4, "max_length": 40, **changes,
    }  # fmt: skip
    return randomize(Transformer(ModelSettings(**settings)))  # type: ignore[arg-type]


def randomize(model: Transformer) -> Transformer:
    """Give biases and running statistics values that matter, and spread logits so that rounding decides nothing."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "bias" in name:
                parameter.normal_(0, 0.1)
        for name, buffer in model.named_buffers():
            if name.endswith("running_mean"):
                buffer.normal_(0, 0.1)
            elif name.endswith("running_var"):
                buffer.uniform_(1, 2)
        model.output.weight.mul_(2)
    return model.eval()


def make_sources(n: int = 23, seed: int = 1) -> list[list[int]]:
    random = np.random.default_rng(seed)
    return [[*random.integers(4, 61, size=random.integers(1, 24)).tolist(), SPECIAL_TOKENS.eos] for _ in range(n)]


VARIANTS = {
    "paper": {},
    "pre-norm": {"norm_placement": "pre"},
    "Marian": {"activation": "silu", "positions": "learned", "attention_bias": True, "output_bias": True},
    "rotary": {"positions": "rotary", "norm_placement": "pre"},
    "alibi": {"positions": "alibi"},
    "learned": {"positions": "learned"},
    "no positions": {"positions": "none", "norm": "rms", "norm_placement": "pre"},
    "batch norm": {"norm": "batch"},
    "gelu": {"activation": "gelu"},
    "swiglu": {"activation": "swiglu", "feed_forward_width": 50},
    "biases": {"attention_bias": True},
    "plain dot": {"scores": "dot"},
    "grouped": {"n_key_heads": 2, "positions": "rotary"},
    "odd sizes": {"width": 38, "n_heads": 3, "head_width": 10, "value_width": 7, "vocab_size": 67},
    "tied": {"projections": "tied"},
    "shared": {"projections": "shared"},
    "untied": {"tie_source_target": False, "tie_output": False, "scale_embedding": False},
    "pruned": {
        "kept_heads": {"encoder.0.self": (1, 3), "decoder.0.self": (0,), "decoder.1.self": (), "decoder.1.cross": (2,)},
        "attention_bias": True,
        "positions": "alibi",
    },
    "pruned groups": {"kept_heads": {"decoder.0.cross": (0, 2, 3)}, "n_key_heads": 2},
}
SEARCHES = {
    "greedy": DecodeSettings(method="greedy"),
    "beam": DecodeSettings(beam=4, length_penalty=1.0, max_new_tokens=32),
    "n-best": DecodeSettings(beam=5, n_best=3, length_penalty=0.6, max_new_tokens=24),
    "one beam": DecodeSettings(beam=1, max_new_tokens=3),
    "wider than the vocabulary": DecodeSettings(beam=64, n_best=2, max_new_tokens=20),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_model_variant_generates_the_same_tokens(variant: str) -> None:
    model = make_model(**VARIANTS[variant])
    compare(model, [SEARCHES["greedy"], SEARCHES["n-best"]])


@pytest.mark.parametrize("search", SEARCHES)
def test_every_search_generates_the_same_tokens(search: str) -> None:
    compare(make_model(seed=5), [SEARCHES[search]])


def compare(model: Transformer, searches: list[DecodeSettings]) -> None:
    native, reference = make_native(model, SPECIAL_TOKENS), TorchEngine(model, SPECIAL_TOKENS)
    sources = make_sources()
    for settings in searches:
        found = native.generate(sources, settings, range(len(sources)))
        expected = reference.generate(sources, settings, range(len(sources)))
        for ours, theirs in zip(found, expected, strict=True):
            assert [one.ids for one in ours] == [one.ids for one in theirs]
            assert [one.finished for one in ours] == [one.finished for one in theirs]
            for one, other in zip(ours, theirs, strict=True):
                assert one.log_probability == pytest.approx(other.log_probability, rel=1e-5, abs=1e-4)
                assert one.score == pytest.approx(other.score, rel=1e-5, abs=1e-4)


def test_a_sentence_does_not_depend_on_its_batch() -> None:
    native, sources = make_native(make_model(), SPECIAL_TOKENS), make_sources(150)
    together = native.generate(sources, SEARCHES["beam"], range(len(sources)))
    for row in (0, 7, 149):
        assert native.generate([sources[row]], SEARCHES["beam"], [0]) == [together[row]]  # bit-identical


def test_long_answers_are_decoded_in_smaller_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    native, settings = make_native(make_model(), SPECIAL_TOKENS), SEARCHES["beam"]
    sources = make_sources(9)
    together, sizes, part = native.generate(sources, settings, range(9)), [], native._part

    def count(index: Sequence[int], *rest: Any) -> Any:
        sizes.append(len(index))
        return part(index, *rest)

    monkeypatch.setattr(native, "_part", count)
    longest = settings.n_best * max(min(settings.max_length(len(source)), native.max_length) for source in sources)
    monkeypatch.setattr(native_engine, "_MAX_ANSWER_IDS", 2 * longest)
    assert native.generate(sources, settings, range(9)) == together
    assert sorted(sizes) == [1, 2, 2, 2, 2]


def test_no_sources_give_no_hypotheses() -> None:
    assert make_native(make_model(), SPECIAL_TOKENS).generate([], SEARCHES["beam"], []) == []


def test_ids_and_lengths_out_of_range_are_errors() -> None:
    native = make_native(make_model(), SPECIAL_TOKENS)
    with pytest.raises(DataError, match="A sequence of 41 tokens is longer than this model's 40"):
        native.generate([[5] * 41], SEARCHES["greedy"], [0])
    assert len(native.generate([[5] * 40], SEARCHES["greedy"], [0])) == 1
    with pytest.raises(ValueError, match="from 0 to 60, not 3 … 61"):
        native.generate([[5, 61, 3]], SEARCHES["greedy"], [0])


def test_forbidding_every_token_gives_empty_unfinished_hypotheses() -> None:
    model = make_model()
    special_tokens = SpecialTokens(bos=2, eos=3, pad=0, forbidden=tuple(range(61)))
    settings = SEARCHES["beam"]
    sources = make_sources(3)
    found = make_native(model, special_tokens).generate(sources, settings, range(3))
    assert found == TorchEngine(model, special_tokens).generate(sources, settings, range(3))
    assert [one.ids for (one,) in found] == [(), (), ()]


@pytest.mark.parametrize(
    ("changes", "setting"),
    [
        ({"scores": "cosine"}, 'model.scores = "cosine"'),
        ({"projections": "none"}, 'model.projections = "none"'),
        ({"norm": "sample"}, 'model.norm = "sample"'),
    ],
)
def test_an_unsupported_setting_is_named(changes: dict[str, str], setting: str) -> None:
    with pytest.raises(EngineError, match=setting):
        make_native(make_model(**changes), SPECIAL_TOKENS)


def test_int8_is_close_to_float32() -> None:
    """Quantization changes log-probabilities more than rounding, and far less than another model would."""
    model, settings, sources = make_model(norm_placement="pre"), SEARCHES["greedy"], make_sources(60)
    exact = make_native(model, SPECIAL_TOKENS).generate(sources, settings, range(60))
    rounded = make_native(model, SPECIAL_TOKENS, is_int8=True).generate(sources, settings, range(60))
    other = make_native(make_model(seed=3, norm_placement="pre"), SPECIAL_TOKENS).generate(sources, settings, range(60))
    same = [(a[0], b[0]) for a, b in zip(exact, rounded, strict=True) if a[0].ids == b[0].ids]
    assert len(same) >= 40
    assert sum(a[0].ids == b[0].ids for a, b in zip(exact, other, strict=True)) <= 5
    differences = [abs(a.log_probability - b.log_probability) for a, b in same]
    assert 1e-4 < max(differences) < 0.5
