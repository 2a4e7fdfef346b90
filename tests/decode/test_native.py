"""The native engine generates the same tokens as PyTorch for every setting that it supports."""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch

from manyheads.decode import DecodeSettings, SpecialTokens, TorchEngine
from manyheads.decode.native import library
from manyheads.decode.native.native_engine import make_native
from manyheads.errors import DataError, EngineError
from manyheads.model import ModelSettings, Transformer

SPECIAL_TOKENS = SpecialTokens(bos=2, eos=3, pad=0, forbidden=(0, 1, 2))


def make_model(seed: int = 0, **changes: object) -> Transformer:
    torch.manual_seed(seed)
    settings = {
        "vocab_size": 61, "width": 32, "n_encoder_layers": 2, "n_decoder_layers": 2, "feed_forward_width": 48,
        "n_heads": 4, "max_length": 40, **changes,
    }  # fmt: skip
    model = Transformer(ModelSettings(**settings))  # type: ignore[arg-type]
    with torch.no_grad():  # probabilities far apart, so that rounding does not decide; and every bias counts
        for name, parameter in model.named_parameters():
            if "bias" in name:
                parameter.normal_(0, 0.1)
        for name, buffer in model.named_buffers():
            if name.endswith("mean"):
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


@pytest.fixture(autouse=True)
def _needs_a_compiler() -> None:
    try:
        library.find_compiler()
    except EngineError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_generates_the_same_tokens(variant: str) -> None:
    model = make_model(**VARIANTS[variant])
    _compare(model, [SEARCHES["greedy"], SEARCHES["n-best"]])


@pytest.mark.parametrize("search", SEARCHES)
def test_every_search_finds_the_same_hypotheses(search: str) -> None:
    _compare(make_model(seed=5), [SEARCHES[search]])


def _compare(model: Transformer, searches: list[DecodeSettings]) -> None:
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


def test_a_hypothesis_does_not_depend_on_the_batch() -> None:
    native, sources = make_native(make_model(), SPECIAL_TOKENS), make_sources(150)
    together = native.generate(sources, SEARCHES["beam"], range(len(sources)))
    for row in (0, 7, 149):
        assert native.generate([sources[row]], SEARCHES["beam"], [0]) == [together[row]]  # to the last bit


def test_no_sources_give_no_hypotheses() -> None:
    assert make_native(make_model(), SPECIAL_TOKENS).generate([], SEARCHES["beam"], []) == []


def test_ids_and_lengths_out_of_range_are_refused() -> None:
    native = make_native(make_model(), SPECIAL_TOKENS)
    with pytest.raises(DataError, match="A sequence of 41 tokens is longer than this model's 40"):
        native.generate([[5] * 41], SEARCHES["greedy"], [0])
    with pytest.raises(ValueError, match="from 0 to 60, not 3 … 61"):
        native.generate([[5, 61, 3]], SEARCHES["greedy"], [0])


def test_hypotheses_are_empty_if_every_id_is_forbidden() -> None:
    model = make_model()
    special_tokens = SpecialTokens(bos=2, eos=3, pad=0, forbidden=tuple(range(61)))
    settings = SEARCHES["beam"]
    sources = make_sources(3)
    found = make_native(model, special_tokens).generate(sources, settings, range(3))
    assert found == TorchEngine(model, special_tokens).generate(sources, settings, range(3))
    assert [one.ids for (one,) in found] == [(), (), ()]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scores": "cosine"}, 'model.scores = "cosine"'),
        ({"projections": "none"}, 'model.projections = "none"'),
        ({"norm": "sample"}, 'model.norm = "sample"'),
    ],
)
def test_an_unsupported_model_setting_is_named(changes: dict[str, str], message: str) -> None:
    with pytest.raises(EngineError, match=message):
        make_native(make_model(**changes), SPECIAL_TOKENS)


def test_a_compiler_that_fails_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\necho 'engine.c:1: error: no luck today' >&2\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    with pytest.raises(EngineError, match="no luck today"):
        library.library()


def test_a_cache_that_others_can_write_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = tmp_path / "manyheads" / "native"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    assert library._cache_folder() != folder
    folder.chmod(0o700)
    assert library._cache_folder() == folder


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="other vector widths are those of x86-64")
@pytest.mark.parametrize("flags", [("-O2",), ("-O2", "-mavx2", "-mfma")])
def test_other_vector_widths_generate_the_same_tokens(
    flags: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library compiled for narrower vectors also runs on this processor."""
    if "-mavx2" in flags and " avx2 " not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this processor has no AVX2")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(library, "_FLAGS", (flags,))
    for variant in ("paper", "odd sizes", "swiglu"):
        _compare(make_model(**VARIANTS[variant]), [SEARCHES["greedy"], SEARCHES["n-best"]])
    assert [path.suffix for path in (tmp_path / "manyheads" / "native").iterdir()] == [".so"]


def test_the_source_compiles_without_a_warning(tmp_path: Path) -> None:
    command = [library.find_compiler(), "-std=gnu11", "-Wall", "-Wextra", "-O2", "-c", str(library.SOURCE)]
    done = subprocess.run([*command, "-o", str(tmp_path / "engine.o")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_int8_hypotheses_are_close_to_float32() -> None:
    """Eight bits change a log-probability a little: more than rounding would, far less than another model would."""
    model, settings, sources = make_model(norm_placement="pre"), SEARCHES["greedy"], make_sources(60)
    exact = make_native(model, SPECIAL_TOKENS).generate(sources, settings, range(60))
    bytes_ = make_native(model, SPECIAL_TOKENS, is_int8=True).generate(sources, settings, range(60))
    other = make_native(make_model(seed=3, norm_placement="pre"), SPECIAL_TOKENS).generate(sources, settings, range(60))
    same = [(a[0], b[0]) for a, b in zip(exact, bytes_, strict=True) if a[0].ids == b[0].ids]
    assert len(same) >= 40
    assert sum(a[0].ids == b[0].ids for a, b in zip(exact, other, strict=True)) <= 5
    differences = [abs(a.log_probability - b.log_probability) for a, b in same]
    assert 1e-4 < max(differences) < 0.5


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="other vector widths are those of x86-64")
def test_int8_is_the_same_for_every_vector_width(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of bytes are whole numbers: what was measured on one machine holds on another."""
    model, sources = make_model(width=38, n_heads=2, feed_forward_width=50), make_sources(40)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    has_avx2 = " avx2 " in Path("/proc/cpuinfo").read_text()
    found = []
    for flags in [("-O2", "-march=native"), ("-O2",), *([("-O2", "-mavx2", "-mfma")] if has_avx2 else [])]:
        monkeypatch.setattr(library, "_FLAGS", (flags,))
        answers = make_native(model, SPECIAL_TOKENS, is_int8=True).generate(sources, SEARCHES["beam"], range(40))
        found.append([one[0].ids for one in answers])
    assert all(answers == found[0] for answers in found)
