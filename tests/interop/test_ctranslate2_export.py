"""The CTranslate2 export: greedy search of CTranslate2 generates the ids of PyTorch, and refusals name the setting."""

import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from manyheads.bundle import Bundle
from manyheads.decode import DecodeSettings, SpecialTokens, TorchEngine
from manyheads.errors import BundleError, EngineError
from manyheads.interop import export_bundle, export_ctranslate2
from manyheads.model import ModelSettings, Transformer

from decode.small import BOS, EOS, PAD, UNK
from lens.makers import task_of

ctranslate2 = pytest.importorskip("ctranslate2", reason="the extra manyheads[ctranslate2] is not installed")

SPECIAL_TOKENS = SpecialTokens(bos=BOS, eos=EOS, pad=PAD, forbidden=(PAD, UNK))
MAX_LENGTH = 24
TOKENS = [str(number) for number in range(24)]

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


def translate(model: Transformer, folder: Path, sources: list[list[int]], **options: Any) -> Any:
    """Export a model and translate greedily with CTranslate2."""
    export_ctranslate2(model, SPECIAL_TOKENS, folder, TOKENS)
    n_threads = torch.get_num_threads()
    try:
        translator = ctranslate2.Translator(str(folder), inter_threads=1, intra_threads=1, **options)
        return translator.translate_batch(
            [[TOKENS[number] for number in source] for source in sources],
            beam_size=1,
            min_decoding_length=0,
            max_decoding_length=MAX_LENGTH,
            suppress_sequences=[[TOKENS[number]] for number in (*SPECIAL_TOKENS.forbidden, BOS)],
            max_input_length=0,
            return_scores=True,
        )
    finally:
        torch.set_num_threads(n_threads)  # CTranslate2 shares OpenMP with torch


@pytest.mark.parametrize("variant", VARIANTS)
def test_greedy_search_generates_the_same_ids(variant: str, tmp_path: Path) -> None:
    settings = DecodeSettings(method="greedy", max_new_tokens=MAX_LENGTH)
    for seed in range(2):
        model = make_model(seed, **VARIANTS[variant])
        # CTranslate2 gives no hypothesis for a source that is EOS alone.
        sources = [source for source in make_sources(seed) if len(source) > 1]
        expected = TorchEngine(model, SPECIAL_TOKENS).generate(sources, settings, range(len(sources)))
        results = translate(model, tmp_path / str(seed), sources)
        for result, (best,) in zip(results, expected, strict=True):
            assert [int(token) for token in result.hypotheses[0]] == list(best.ids)


def test_ctranslate2_can_quantize_an_export(tmp_path: Path) -> None:
    results = translate(make_model(width=64), tmp_path / "export", make_sources(1), compute_type="int8_float32")
    assert len(results) == 12


@pytest.mark.parametrize(
    ("changes", "setting"),
    [
        ({"positions": "alibi"}, 'model.positions = "alibi"'),
        ({"scores": "cosine"}, 'model.scores = "cosine"'),
        ({"projections": "tied"}, 'model.projections = "tied"'),
        ({"norm": "batch"}, 'model.norm = "batch"'),
        ({"value_width": 8}, "model.value_width = 8 with model.head_width = 4"),
        ({"kept_heads": {"encoder.0.self": (0, 2)}}, r"model.kept_heads \(pruned heads\)"),
        ({"shape": "decoder"}, 'model.shape = "decoder"'),
        ({"scores": "dot", "norm": "sample"}, 'model.scores = "dot", model.norm = "sample"'),
    ],
)
def test_an_unsupported_setting_is_named(changes: dict[str, Any], setting: str, tmp_path: Path) -> None:
    sizes = {"vocab_size": 24, "width": 16, "feed_forward_width": 24, "n_heads": 4, "max_length": 40}
    model = Transformer(ModelSettings(**sizes, n_encoder_layers=1, n_decoder_layers=1, **changes))
    with pytest.raises(EngineError, match=f"^CTranslate2 does not support {setting}.$"):
        export_ctranslate2(model, SPECIAL_TOKENS, tmp_path / "export", TOKENS)


def test_a_missing_package_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(EngineError, match=r"^The package ctranslate2 is not installed.*pip install 'manyheads\[ctrans"):
        export_ctranslate2(make_model(), SPECIAL_TOKENS, tmp_path / "export", TOKENS)


def test_an_exported_bundle_translates_text(untrained: Bundle, tmp_path: Path) -> None:
    sentencepiece = pytest.importorskip("sentencepiece")
    export_bundle(untrained, tmp_path / "export")
    processor = sentencepiece.SentencePieceProcessor(str(tmp_path / "export" / "tokenizer.model"))
    texts = ["The dog sleeps.", "Two small cats are here."]
    n_threads = torch.get_num_threads()
    try:
        translator = ctranslate2.Translator(str(tmp_path / "export"), inter_threads=1, intra_threads=1)
        results = translator.translate_batch(
            processor.encode(texts, out_type=str), beam_size=1, max_decoding_length=8, min_decoding_length=0,
            suppress_sequences=[["<pad>"], ["<unk>"], ["<s>"]],
        )  # fmt: skip
    finally:
        torch.set_num_threads(n_threads)
    answers = [processor.decode(result.hypotheses[0]) for result in results]
    assert answers == untrained.predict(texts, method="greedy", max_new_tokens=8)


def test_only_seq2seq_bundles_are_exported(tmp_path: Path) -> None:
    bundle = Bundle(task_of("language"), DecodeSettings(), {})
    with pytest.raises(BundleError, match=r"^Only seq2seq bundles can be exported to CTranslate2; .* of task lang"):
        export_bundle(bundle, tmp_path / "export")
    assert list(tmp_path.iterdir()) == []
