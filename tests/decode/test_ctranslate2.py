"""The ctranslate2 engine: the reference's very ids, refusals by name, and what is kept beside a bundle."""

import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from manyheads.decode import DecodeSettings
from manyheads.decode.engines import Engine, EngineSelector, SpecialTokens, TorchEngine
from manyheads.errors import DataError, EngineError
from manyheads.model import ModelSettings, Transformer

from .small import BOS, EOS, PAD, UNK

pytest.importorskip("ctranslate2", reason="the extra manyheads[ctranslate2] is not installed")

from manyheads.decode.ctranslate2 import make_ctranslate2

SPECIAL_TOKENS = SpecialTokens(bos=BOS, eos=EOS, pad=PAD, forbidden=(PAD, UNK))
GREEDY = DecodeSettings(method="greedy", max_new_tokens=12, length_penalty=0.8)

VARIANTS: dict[str, dict[str, Any]] = {
    "2017": {},
    "untied": {"tie_source_target": False, "tie_output": False},
    "own output": {"tie_output": False},
    "pre-norm, learned": {"norm_placement": "pre", "positions": "learned"},
    "rotary, rms, pre": {"positions": "rotary", "norm": "rms", "norm_placement": "pre"},
    "rotary, post": {"positions": "rotary"},
    "no positions": {"positions": "none"},
    "gelu, biases": {"activation": "gelu", "attention_bias": True},
    "swiglu": {"activation": "swiglu", "norm_placement": "pre"},
    "unscaled embedding": {"scale_embedding": False},
    "grouped queries": {"n_key_heads": 2, "attention_bias": True},
    "one key head, rotary": {"n_key_heads": 1, "positions": "rotary"},
    "narrow heads": {"head_width": 2},
    "wide heads, rotary": {"head_width": 6, "positions": "rotary", "n_key_heads": 2},
    "large epsilon": {"norm_epsilon": 0.1, "norm": "rms"},
    "deep encoder": {"n_encoder_layers": 3, "n_decoder_layers": 1},
}


def make_model(seed: int = 0, **changes: Any) -> Transformer:
    torch.manual_seed(seed)
    sizes = {"vocab_size": 24, "width": 16, "feed_forward_width": 24, "n_heads": 4, "max_length": 40}
    layers = {"n_encoder_layers": 1, "n_decoder_layers": 2}
    model = Transformer(ModelSettings(**{**sizes, **layers, **changes})).eval()
    with torch.no_grad():
        model.output.weight.mul_(3.0)  # so that the choices are clear
        for name, values in model.named_parameters():
            if name.endswith(("bias", "norm.weight")):
                values.add_(0.2 * torch.randn_like(values))  # as after training: none is 0 or 1
    return model


def make_sources(seed: int, n_sources: int = 12, longest: int = 20) -> list[list[int]]:
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(0, longest, (n_sources,), generator=generator).tolist()
    return [[*torch.randint(4, 24, (length,), generator=generator).tolist(), EOS] for length in lengths]


def make_engine(model: Transformer, folder: Path | None = None, told: list[str] | None = None) -> Engine:
    return make_ctranslate2(model, SPECIAL_TOKENS, folder, (told if told is not None else []).append)


def assert_same(model: Transformer, engine: Engine, settings: DecodeSettings, sources: list[list[int]]) -> None:
    streams = range(len(sources))
    expected = TorchEngine(model, SPECIAL_TOKENS).generate(sources, settings, streams)
    for ours, theirs in zip(engine.generate(sources, settings, streams), expected, strict=True):
        assert [(h.ids, h.finished) for h in ours] == [(h.ids, h.finished) for h in theirs]
        assert ours[0].log_probability == pytest.approx(theirs[0].log_probability, rel=1e-6, abs=1e-4)
        assert ours[0].score == pytest.approx(theirs[0].score, rel=1e-6, abs=1e-4)


@pytest.mark.parametrize("variant", VARIANTS)
def test_its_ids_are_the_references(variant: str) -> None:
    for seed in range(2):
        model = make_model(seed, **VARIANTS[variant])
        assert_same(model, make_engine(model), GREEDY, make_sources(seed))


def leaning_towards(model: Transformer, number: int, length: float) -> Transformer:
    """The same model, which finds one id much more, or less, probable than before."""
    with torch.no_grad():
        bias = torch.full_like(model.decoder_norm.bias, 0.5)
        model.decoder_norm.bias.add_(bias)
        model.output.weight[number].add_(length)
    return model


def test_what_ends_at_once_is_empty_and_finished() -> None:
    model = leaning_towards(make_model(norm_placement="pre", tie_output=False), EOS, 2.0)
    engine, sources = make_engine(model), make_sources(3, n_sources=4)
    assert_same(model, engine, GREEDY, sources)
    assert all(h.ids == () and h.finished for (h,) in engine.generate(sources, GREEDY, range(4)))


@pytest.mark.parametrize("max_new_tokens", [0, 3, 100])
def test_each_sentence_has_a_maximum_length_of_its_own(max_new_tokens: int) -> None:
    model = leaning_towards(make_model(norm_placement="pre", tie_output=False), EOS, -2.0)
    engine, sources = make_engine(model), make_sources(4)
    settings = DecodeSettings(method="greedy", max_new_tokens=max_new_tokens)
    assert_same(model, engine, settings, sources)
    for source, (found,) in zip(sources, engine.generate(sources, settings, range(len(sources))), strict=True):
        assert len(found.ids) == min(len(source) + max_new_tokens, 40) and not found.finished


@pytest.mark.parametrize("number", [PAD, UNK, BOS])
def test_what_must_not_be_written_is_not_and_rescales_nothing(number: int) -> None:
    model = leaning_towards(make_model(norm_placement="pre", tie_output=False), number, 2.0)
    assert_same(model, make_engine(model), GREEDY, make_sources(5))


def test_more_than_one_batch_of_a_worker() -> None:
    model = make_model(6)
    assert_same(model, make_engine(model), GREEDY, make_sources(6, n_sources=150))


def test_nothing_in_nothing_out() -> None:
    assert make_engine(make_model()).generate([], GREEDY, []) == []


def test_a_source_beyond_the_positions_it_knows_is_refused() -> None:
    with pytest.raises(DataError, match=r"41 tokens is longer than this model's 40"):
        make_engine(make_model()).generate([[*[5] * 40, EOS]], GREEDY, [0])


def test_int8_is_loaded_from_the_same_export(tmp_path: Path) -> None:
    model, told = make_model(width=64), []
    make_engine(model, tmp_path / "bundle", told)
    engine = make_ctranslate2(model, SPECIAL_TOKENS, tmp_path / "bundle", told.append, precision="int8")
    assert engine.translator.compute_type == "int8_float32"
    assert len(engine.generate(make_sources(1), GREEDY, range(12))) == 12 and told == []


@pytest.mark.parametrize(
    ("settings", "lacking"),
    [
        (GREEDY, ""),
        (DecodeSettings(beam=1), ""),
        (DecodeSettings(beam=2), "beam search that finds the same"),
        (DecodeSettings(method="sample"), "sampling that draws the same"),
    ],
)
def test_what_it_lacks(settings: DecodeSettings, lacking: str) -> None:
    assert make_engine(make_model()).unsupported(settings) == lacking


def test_a_beam_of_one_is_greedy() -> None:
    model = make_model(7)
    assert_same(
        model, make_engine(model), DecodeSettings(beam=1, max_new_tokens=5, length_penalty=1.0), make_sources(7)
    )


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"positions": "alibi"}, 'model.positions = "alibi"'),
        ({"scores": "cosine"}, 'model.scores = "cosine"'),
        ({"projections": "tied"}, 'model.projections = "tied"'),
        ({"norm": "batch"}, 'model.norm = "batch"'),
        ({"value_width": 8}, "model.value_width = 8 beside 4 of a key"),
        ({"kept_heads": {"encoder.0.self": (0, 2)}}, r"model.kept_heads \(pruned heads\)"),
        ({"shape": "decoder"}, 'model.shape = "decoder"'),
        ({"scores": "dot", "norm": "sample"}, 'model.scores = "dot", model.norm = "sample"'),
    ],
)
def test_a_setting_it_does_not_know_is_named(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(EngineError, match=f"^The ctranslate2 engine does not know {named}.$"):
        make_engine(make_model_of(changes))


def make_model_of(changes: dict[str, Any]) -> Transformer:
    sizes = {"vocab_size": 24, "width": 16, "feed_forward_width": 24, "n_heads": 4, "max_length": 40}
    return Transformer(ModelSettings(**sizes, n_encoder_layers=1, n_decoder_layers=1, **changes))


def test_not_installed_is_one_line_and_the_reference_does_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    told: list[str] = []
    chosen = EngineSelector(make_model(), SPECIAL_TOKENS, "ctranslate2", tell=told.append).choose(GREEDY)
    assert chosen.name == "torch" and len(told) == 1
    assert "not installed" in told[0] and "pip install 'manyheads[ctranslate2]'" in told[0]


def test_a_beam_that_was_asked_for_falls_back_and_says_why() -> None:
    told: list[str] = []
    chosen = EngineSelector(make_model(), SPECIAL_TOKENS, "ctranslate2", tell=told.append)
    assert [chosen.choose(settings).name for settings in (GREEDY, DecodeSettings())] == ["ctranslate2", "torch"]
    assert told[-1] == "Engine: torch, since the ctranslate2 engine has no beam search that finds the same."


def test_the_export_is_kept_beside_the_bundle_and_used_again(tmp_path: Path) -> None:
    model, told = make_model(), []
    for _ in range(2):
        assert_same(model, make_engine(model, tmp_path / "bundle", told), GREEDY, make_sources(0, n_sources=3))
        times = {file.name: file.stat().st_mtime_ns for file in (tmp_path / "bundle.ctranslate2").iterdir()}
    make_engine(model, tmp_path / "bundle", told)
    assert times == {file.name: file.stat().st_mtime_ns for file in (tmp_path / "bundle.ctranslate2").iterdir()}
    assert told == [] and [path.name for path in tmp_path.iterdir()] == ["bundle.ctranslate2"]


def test_an_export_of_another_model_is_replaced(tmp_path: Path) -> None:
    told: list[str] = []
    make_engine(make_model(0), tmp_path / "bundle", told)
    other = make_model(1)
    assert_same(other, make_engine(other, tmp_path / "bundle", told), GREEDY, make_sources(0, n_sources=3))
    assert len(told) == 1 and "is of another model or another ctranslate2: it is written anew." in told[0]


@pytest.mark.parametrize("name", ["model.bin", "origin.txt", "MANIFEST.sha256"])
def test_a_damaged_export_is_replaced(tmp_path: Path, name: str) -> None:
    model, told = make_model(), []
    make_engine(model, tmp_path / "bundle", told)
    file = tmp_path / "bundle.ctranslate2" / name
    file.write_bytes(file.read_bytes()[:-1])
    for _ in range(2):  # the second time it is whole again
        assert_same(model, make_engine(model, tmp_path / "bundle", told), GREEDY, make_sources(0, n_sources=3))
    assert len(told) == 1 and "is written anew, since it is not whole." in told[0]


def test_where_nothing_can_be_written_it_works_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    model, told = make_model(), []
    assert_same(model, make_engine(model, tmp_path / "file" / "bundle", told), GREEDY, make_sources(0, n_sources=3))
    assert len(told) == 1 and "cannot be written (" in told[0] and "is not kept." in told[0]


def test_without_a_bundle_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    model = make_model()
    assert_same(model, make_engine(model), GREEDY, make_sources(0, n_sources=3))
    assert list(tmp_path.iterdir()) == []


def test_torch_keeps_its_threads() -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        make_ctranslate2(make_model(), SPECIAL_TOKENS, None, print).generate([[5, 6, EOS]], GREEDY, [0])
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
