"""The Hugging Face export: `transformers` computes the same logits and ids, and refusals name every difference."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open

from manyheads.bundle import Bundle
from manyheads.decode import DecodeSettings
from manyheads.errors import BundleError
from manyheads.interop.huggingface_export import export_huggingface
from manyheads.interop.tokenizer_json import tokenizer_files
from manyheads.metrics import Score
from manyheads.model import ModelSettings, Transformer
from manyheads.tasks import (
    Classify,
    ClassifySettings,
    Language,
    LanguageSettings,
    Masked,
    MaskedSettings,
    Seq2Seq,
    Seq2SeqSettings,
    Tag,
    TagSettings,
    Task,
)
from manyheads.tasks.calibration import Calibration
from manyheads.text.tokens.tokenizer import BOS, EOS, PAD, UNK, Tokenizer, TokenizerSettings

from tasks.makers import DOCUMENTS, TOKENIZERS

transformers = pytest.importorskip("transformers", reason="transformers is needed to compare with")

TEXTS = ["the cat sat on the mat.", "no dog", " a  b ", "the red mat 😀 12"]
PRE = {"norm_placement": "pre"}
ROTARY = {**PRE, "positions": "rotary", "activation": "gelu"}
ENCODERS: list[dict[str, Any]] = [
    PRE,
    {**PRE, "positions": "learned", "activation": "gelu", "attention_bias": True},
    {**PRE, "positions": "none", "scale_embedding": False, "n_key_heads": 2},
    ROTARY,
    {**ROTARY, "attention_bias": True, "n_key_heads": 1, "tie_output": False},
]
DECODERS: list[tuple[str, dict[str, Any]]] = [
    ("GPT2LMHeadModel", PRE),
    ("GPT2LMHeadModel", {**PRE, "positions": "learned", "activation": "gelu", "n_key_heads": 2}),
    ("GPT2LMHeadModel", {**PRE, "scale_embedding": False, "attention_bias": True}),
    ("GPTNeoXForCausalLM", ROTARY),
    ("GPTNeoXForCausalLM", {**ROTARY, "activation": "relu", "attention_bias": True}),
    ("LlamaForCausalLM", {**ROTARY, "norm": "rms", "activation": "swiglu", "n_key_heads": 2}),
]
PAIRS: list[tuple[str, dict[str, Any]]] = [
    ("PegasusForConditionalGeneration", PRE),
    ("PegasusForConditionalGeneration", {**PRE, "positions": "learned", "activation": "gelu", "attention_bias": True}),
    ("MarianMTModel", {}),
    ("MarianMTModel", {"scale_embedding": False, "n_key_heads": 2, "tie_output": False}),
]


def make_model(shape: str, tokenizer: str, changes: dict[str, Any]) -> Transformer:
    torch.manual_seed(3)
    sizes = {"vocab_size": TOKENIZERS[tokenizer].vocab_size, "width": 16, "feed_forward_width": 24, "n_heads": 4}
    layers = {"n_encoder_layers": 2, "n_decoder_layers": 2, "max_length": 64, "shape": shape}
    model = Transformer(ModelSettings(**{**sizes, **layers, **changes})).eval()
    with torch.no_grad():
        for name, values in model.named_parameters():
            if name.endswith(("bias", "norm.weight")):
                values.add_(0.2 * torch.randn_like(values))  # as after training: none is 0 or 1
    return model


def load(task: Task, folder: Path, **parts: Any) -> tuple[Any, Any]:
    """Export a task; the model and the tokenizer that transformers loads, without a missing or superfluous tensor."""
    export_huggingface(Bundle(task, DecodeSettings(), {}, **parts), folder)
    (name,) = json.loads((folder / "config.json").read_text())["architectures"]
    model, report = getattr(transformers, name).from_pretrained(folder, output_loading_info=True, local_files_only=True)
    assert not any(report.values()), report
    return model.eval(), transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)


def classifier(changes: dict[str, Any], **settings: Any) -> Classify:
    rows = [("the cat", "a"), ("a dog", "b"), ("red", "c")]
    options = ClassifySettings(**{"pooling": "first", "baseline": False, **settings})
    model = make_model("encoder", "bpe", changes)
    return Classify.create(model, TOKENIZERS["bpe"], options, rows)


@pytest.mark.parametrize("changes", ENCODERS)
@torch.no_grad()
def test_classifiers_have_the_same_logits(changes: dict[str, Any], tmp_path: Path) -> None:
    task = replace(classifier(changes), calibration=Calibration(1.7, 100))
    model, tokenizer = load(task, tmp_path / "hf")
    found = model(**tokenizer(TEXTS, padding=True, return_tensors="pt")).logits
    torch.testing.assert_close(found, task.logits(TEXTS) / 1.7, atol=1e-4, rtol=0)
    assert model.config.id2label == {0: "a", 1: "b", 2: "c"}


@pytest.mark.parametrize("changes", ENCODERS)
@torch.no_grad()
def test_taggers_have_the_same_logits(changes: dict[str, Any], tmp_path: Path) -> None:
    rows = [("the cat sat", "O B-x O"), ("no dog", "O B-y")]
    settings = TagSettings(decoder="constrained", baseline=False)
    task = Tag.create(make_model("encoder", "bpe", changes), TOKENIZERS["bpe"], settings, rows)
    model, tokenizer = load(task, tmp_path / "hf")
    words = ["no", "dog", "sat,", "the"]
    batch = tokenizer(words, is_split_into_words=True, return_tensors="pt")
    tokens = model(**batch).logits[0]
    numbers = batch.word_ids()
    found = [tokens[[number == word for number in numbers]].mean(0) for word in range(len(words))]
    (expected,) = task.word_tagger.tag([words])
    torch.testing.assert_close(torch.stack(found), expected.scores, atol=1e-4, rtol=0)
    assert model.config.id2label[2] == "I-x"


@pytest.mark.parametrize("changes", ENCODERS)
@torch.no_grad()
def test_masked_language_models_have_the_same_logits(changes: dict[str, Any], tmp_path: Path) -> None:
    task = Masked.create(make_model("encoder", "bpe", changes), TOKENIZERS["bpe"], MaskedSettings(), [])
    model, tokenizer = load(task, tmp_path / "hf")
    text = "the [MASK] sat on [MASK]."
    ids = torch.tensor([[token.id for token in task.model_input(text).source]])
    assert tokenizer(text, return_tensors="pt")["input_ids"].tolist() == ids.tolist()
    torch.testing.assert_close(model(ids).logits, task.model(ids), atol=1e-4, rtol=0)


@pytest.mark.parametrize(("name", "changes"), DECODERS)
@torch.no_grad()
def test_language_models_generate_the_same_tokens(name: str, changes: dict[str, Any], tmp_path: Path) -> None:
    task = Language.create(make_model("decoder", "bpe", changes), TOKENIZERS["bpe"], LanguageSettings())
    model, tokenizer = load(task, tmp_path / "hf")
    assert type(model).__name__ == name
    for text in TEXTS:
        ids = tokenizer(text, return_tensors="pt")["input_ids"]
        assert ids[0].tolist() == [BOS, *task.tokenizer.encode(text)]
        torch.testing.assert_close(model(ids).logits, task.model(target=ids), atol=1e-4, rtol=0)
        if text.endswith(" "):  # a space after a prompt is left to the next token
            continue
        written = model.generate(ids, max_new_tokens=12, max_length=None)[0, ids.size(1) :].tolist()
        settings = DecodeSettings(method="greedy", max_new_tokens=12)
        best, _read = task.generate_one(task.model_input(text), settings)
        assert [number for number in written if number != EOS] == list(best.ids)


@pytest.mark.parametrize(("name", "changes"), PAIRS)
@torch.no_grad()
def test_translators_generate_the_same_tokens(name: str, changes: dict[str, Any], tmp_path: Path) -> None:
    settings = Seq2SeqSettings(source_language="en", target_language="de")
    task = Seq2Seq.create(make_model("encoder-decoder", "bpe", changes), TOKENIZERS["bpe"], settings, [])
    model, tokenizer = load(task, tmp_path / "hf")
    assert type(model).__name__ == name
    batch = tokenizer(TEXTS, padding=True, return_tensors="pt")
    assert batch["input_ids"][1][batch["attention_mask"][1] == 1].tolist() == [*task.tokenizer.encode(TEXTS[1]), EOS]
    target = torch.tensor([[BOS, 270, 265, 280, 262]] * len(TEXTS))
    ours = task.model(batch["input_ids"], target, source_is_real=batch["attention_mask"] == 1)
    torch.testing.assert_close(model(**batch, decoder_input_ids=target).logits, ours, atol=1e-4, rtol=0)
    written = model.generate(**batch, max_new_tokens=10, max_length=None)[:, 1:].tolist()
    for text, row in zip(TEXTS, written, strict=True):
        sources = torch.tensor([[*task.tokenizer.encode(text), EOS]])
        found = [number for number in row if number not in (PAD, EOS)]
        assert found == greedy(task.model, sources, len(row))


def greedy(model: Transformer, source: torch.Tensor, n_tokens: int) -> list[int]:
    """Greedy search without a cache."""
    ids = [BOS]
    for _step in range(n_tokens):
        logits = model(source, torch.tensor([ids]))[0, -1]
        logits[[PAD, UNK, BOS]] = -torch.inf
        ids.append(int(logits.argmax()))
        if ids[-1] == EOS:
            break
    return [number for number in ids[1:] if number != EOS]


@pytest.mark.parametrize("kind", ["bpe", "unigram", "character"])
def test_tokenizers_give_the_same_ids(kind: Any, tmp_path: Path) -> None:
    texts = [*TEXTS, "", " ", "\t\0x", "猫坐在垫子上。", "<0x41>", "a\nb"]
    ours = Tokenizer.train([*texts, *DOCUMENTS], TokenizerSettings(kind=kind, vocab_size=360))
    for name, content in tokenizer_files(ours, frame="bos", max_length=64).items():
        (tmp_path / name).write_text(json.dumps(content), encoding="utf-8")
    loaded = transformers.AutoTokenizer.from_pretrained(tmp_path, local_files_only=True)
    if kind == "unigram":  # it matches a byte that is spelled out, as tokenizer_json says
        texts.remove("<0x41>")
    for text in texts:
        ids = ours.encode(text)
        assert loaded(text)["input_ids"] == [BOS, *ids], text
        assert loaded.decode(loaded(text)["input_ids"], skip_special_tokens=True) == text


def test_folder_has_a_card_and_metadata(tmp_path: Path) -> None:
    scores = {"test": [Score("accuracy", 91.25, 88.0, 94.0, "", 200)]}
    load(classifier(PRE), tmp_path / "hf", scores=scores)
    assert "| test | accuracy | 91.2 | 88.0 – 94.0 | 200 |" in (tmp_path / "hf" / "README.md").read_text()
    with safe_open(tmp_path / "hf" / "model.safetensors", "pt") as file:
        assert file.metadata() == {"format": "pt"}
    assert "auto_map" not in (tmp_path / "hf" / "config.json").read_text()


def test_every_difference_is_named_at_once(tmp_path: Path) -> None:
    task = classifier({"positions": "alibi"}, pooling="mean-max", convolution=3)
    with pytest.raises(BundleError) as error:
        export_huggingface(Bundle(task, DecodeSettings(), {}), tmp_path / "hf")
    for part in ('model.norm_placement = "post"', 'model.positions = "alibi"', '"mean-max"', "task.convolution = 3"):
        assert part in str(error.value)
    assert not list(tmp_path.iterdir())


def test_tagger_with_crf_and_intents_is_refused(tmp_path: Path) -> None:
    rows = [("the cat sat", "O B-x O", "a"), ("no dog", "O B-y", "b")]
    settings = TagSettings(intents=True, ngrams=2, baseline=False)
    task = Tag.create(make_model("encoder", "bpe", PRE), TOKENIZERS["bpe"], settings, rows)
    with pytest.raises(BundleError, match=r'task.decoder = "crf".*task.ngrams = 2.*task.intents = true'):
        export_huggingface(Bundle(task, DecodeSettings(), {}), tmp_path / "hf")


def test_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_arguments: Any, **_options: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("manyheads.interop.huggingface_export.save_file", fail)
    with pytest.raises(OSError, match="No space left"):
        export_huggingface(Bundle(classifier(PRE), DecodeSettings(), {}), tmp_path / "hf")
    assert not list(tmp_path.iterdir())


DATA = Path("/work/shared/data/python-docs-en-zh")


@pytest.mark.proof
@pytest.mark.skipif(not DATA.is_dir(), reason="the shared data is not on this machine")
@pytest.mark.parametrize("kind", ["bpe", "character"])
def test_tokenizers_give_the_same_ids_for_thousands_of_lines(kind: Any, tmp_path: Path) -> None:
    files = [DATA / "train.en", DATA / "train.zh", DATA.parent / "multi30k-en-de" / "valid.de"]
    lines = [line for file in files if file.exists() for line in file.read_text("utf-8").split("\n")[:1500]]
    lines = [line for line in lines if "▁" not in line]
    ours = Tokenizer.train(lines[::2], TokenizerSettings(kind=kind, vocab_size=3000))
    for name, content in tokenizer_files(ours, frame="bos", max_length=64).items():
        (tmp_path / name).write_text(json.dumps(content), encoding="utf-8")
    loaded = transformers.AutoTokenizer.from_pretrained(tmp_path, local_files_only=True)
    assert len(lines) > 2500
    assert [loaded(line)["input_ids"][1:] for line in lines] == ours.encode_batch(lines)
