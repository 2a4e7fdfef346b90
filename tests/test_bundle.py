"""Bundles: loading restores what was saved, and a damaged bundle never loads."""

import hashlib
import json
import random
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

import manyheads as mh
from manyheads.bundle import Bundle, load
from manyheads.decode import DecodeSettings
from manyheads.errors import BundleError, RecipeError
from manyheads.tasks import DecodingChoice
from manyheads.text.tokens.seen_words import SeenWords
from manyheads.text.tokens.tokenizer import TokenizerSettings

from lens.makers import task_of

SOURCES = ["The dog sleeps.", "", "A small cat reads."]


def reseal(folder: Path) -> None:
    names = sorted(path.name for path in folder.iterdir() if path.name != "MANIFEST.sha256")
    lines = [f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n" for name in names]
    (folder / "MANIFEST.sha256").write_text("".join(lines))


def edit_config(folder: Path, **changes: object) -> None:
    config = json.loads((folder / "bundle.json").read_text())
    (folder / "bundle.json").write_text(json.dumps({k: v for k, v in (config | changes).items() if v is not ...}))
    reseal(folder)


def test_a_loaded_bundle_predicts_the_same(untrained: Bundle, bundle_folder: Path) -> None:
    loaded = mh.load(bundle_folder)
    assert loaded.predict(SOURCES) == untrained.predict(SOURCES)
    assert loaded.scores == untrained.scores
    assert loaded.recipe == untrained.recipe
    assert loaded.task.settings == untrained.task.settings


def test_a_bundle_is_these_files_and_no_pickle(bundle_folder: Path) -> None:
    assert sorted(path.name for path in bundle_folder.iterdir()) == [
        "MANIFEST.sha256",
        "bundle.json",
        "recipe.toml",
        "tokenizer.model",
        "weights.safetensors",
    ]


def test_unseen_words_are_named_after_loading(untrained: Bundle, tmp_path: Path) -> None:
    replace(untrained, seen_words=SeenWords.of(SOURCES)).save(tmp_path / "with words")
    loaded = load(tmp_path / "with words")
    assert loaded.unseen_words("The DOG reads a Xylophone; xylophone.") == ["Xylophone"]
    assert json.loads((tmp_path / "with words" / "bundle.json").read_text())["seen_words"] == {"n_words": 7}
    loaded.save(tmp_path / "again")
    assert load(tmp_path / "again").unseen_words("dog and cat") == ["and"]


def test_bundle_without_words_names_none(bundle_folder: Path) -> None:
    assert "seen_words" not in json.loads((bundle_folder / "bundle.json").read_text())
    assert load(bundle_folder).unseen_words("xyzzy") == []


@pytest.mark.parametrize("tensor", [torch.zeros(3), torch.zeros(2, 2, dtype=torch.int32)])
def test_invalid_words_are_refused(untrained: Bundle, tmp_path: Path, tensor: torch.Tensor) -> None:
    folder = tmp_path / "bundle"
    replace(untrained, seen_words=SeenWords.of(SOURCES)).save(folder)
    save_file({"hashes": tensor}, folder / "words.safetensors")
    reseal(folder)
    with pytest.raises(BundleError, match=r"words\.safetensors does not have the expected content: hashes must be at"):
        load(folder)
    (folder / "words.safetensors").unlink()
    reseal(folder)
    with pytest.raises(BundleError, match=r"does not list words\.safetensors"):
        load(folder)


def test_saving_twice_gives_the_same_bytes(untrained: Bundle, bundle_folder: Path, tmp_path: Path) -> None:
    untrained.save(tmp_path / "again")
    assert (bundle_folder / "MANIFEST.sha256").read_bytes() == (tmp_path / "again" / "MANIFEST.sha256").read_bytes()


def test_any_flipped_bit_is_detected(bundle_folder: Path) -> None:
    rng = random.Random(3)
    for _ in range(60):
        file = rng.choice(sorted(bundle_folder.iterdir()))
        good = file.read_bytes()
        position = rng.randrange(len(good))
        file.write_bytes(good[:position] + bytes([good[position] ^ 1]) + good[position + 1 :])
        with pytest.raises(BundleError):
            load(bundle_folder)
        file.write_bytes(good)


@pytest.mark.parametrize("name", ["weights.safetensors", "bundle.json", "tokenizer.model", "recipe.toml"])
def test_a_missing_file_is_named(bundle_folder: Path, name: str) -> None:
    (bundle_folder / name).unlink()
    with pytest.raises(BundleError, match=f"{name} is missing"):
        load(bundle_folder)
    reseal(bundle_folder)
    with pytest.raises(BundleError, match=f"does not list {name}"):
        load(bundle_folder)


@pytest.mark.parametrize("number", [1, 2])
def test_an_older_format_is_refused_with_what_to_do(bundle_folder: Path, number: int) -> None:
    edit_config(bundle_folder, format=number)
    with pytest.raises(
        BundleError, match=rf"^\S+: made by an older manyheads \(bundle format {number}.*Train it again\.$"
    ):
        load(bundle_folder)


def test_a_newer_format_is_refused_with_what_to_do(bundle_folder: Path) -> None:
    edit_config(bundle_folder, format=99)
    with pytest.raises(BundleError, match=r"made by a newer manyheads \(bundle format 99.*Upgrade"):
        load(bundle_folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "x"}, 'has no valid bundle format: "x"'),
        ({"task": "juggle"}, 'unknown task "juggle"'),
        ({"model": {"vocab_size": 10, "widht": 3}}, r"model.widht is not a setting. Did you mean width\?"),
        ({"model": ...}, "does not have the expected content: 'model'"),
        ({"scores": [1]}, "does not have the expected content"),
        ({"validation_used_for": 5}, "validation_used_for is not a list of training, stopping, calibration"),
        ({"validation_used_for": [["stopping"]]}, "validation_used_for is not a list of training"),
        ({"model": {"vocab_size": 10}}, r"the tokenizer has 1,500 tokens, the model 10"),
    ],
)
def test_invalid_content_is_refused(bundle_folder: Path, changes: dict[str, object], message: str) -> None:
    edit_config(bundle_folder, **changes)
    with pytest.raises(BundleError, match=message):
        load(bundle_folder)


def test_a_missing_folder_is_refused() -> None:
    with pytest.raises(BundleError, match="runs/nowhere: there is no such folder"):
        load("runs/nowhere")


def test_decode_settings_can_be_overridden_per_call(untrained: Bundle) -> None:
    (candidates,) = untrained.candidates(["The dog sleeps."], beam=3, n_best=3)
    assert len(candidates) == 3
    assert candidates[0].score >= candidates[1].score >= candidates[2].score
    with pytest.raises(RecipeError, match=r"decode\.beem is not a setting\. Did you mean beam\?"):
        untrained.predict(["x"], beem=3)


def test_texts_are_checked_and_may_be_any_iterable(untrained: Bundle) -> None:
    with pytest.raises(TypeError, match=r"texts\[1\] is of type NoneType, not str"):
        untrained.predict(["x", None])  # type: ignore[list-item]
    assert untrained.predict(iter(["The dog sleeps."])) == untrained.predict(["The dog sleeps."])
    assert untrained.predict([]) == []


def test_weights_or_tokenizer_of_another_run_are_refused(bundle_folder: Path) -> None:
    weights = (bundle_folder / "weights.safetensors").read_bytes()
    (bundle_folder / "weights.safetensors").write_bytes(weights[:100])
    reseal(bundle_folder)
    with pytest.raises(BundleError, match="is not a safetensors file"):
        load(bundle_folder)
    (bundle_folder / "weights.safetensors").write_bytes(weights)
    other = mh.Tokenizer.train(["some other text"], TokenizerSettings(vocab_size=300))
    (bundle_folder / "tokenizer.model").write_bytes(other.to_bytes())
    reseal(bundle_folder)
    with pytest.raises(BundleError, match=r"the tokenizer has \d+ tokens, the model 1,500"):
        load(bundle_folder)


def test_a_bundle_is_readable_by_all_users(bundle_folder: Path) -> None:
    assert {oct(path.stat().st_mode & 0o777) for path in bundle_folder.iterdir()} == {"0o644"}


def test_a_single_string_is_refused(untrained: Bundle) -> None:
    with pytest.raises(TypeError, match="predict takes a list of texts"):
        untrained.predict("The dog sleeps.")


def test_an_unknown_device_is_refused(bundle_folder: Path) -> None:
    with pytest.raises(RecipeError, match=r'device = "tpu" is not available on this machine\. Available: cpu'):
        load(bundle_folder, device="tpu")


@pytest.mark.parametrize(
    ("content", "message"), [("[]", "expected a JSON object, not a list"), ("{", "not valid JSON")]
)
def test_a_config_that_is_not_a_table_is_refused(bundle_folder: Path, content: str, message: str) -> None:
    (bundle_folder / "bundle.json").write_text(content)
    reseal(bundle_folder)
    with pytest.raises(BundleError, match=message):
        load(bundle_folder)


def test_a_newer_format_may_have_other_files(bundle_folder: Path) -> None:
    (bundle_folder / "tokenizer.model").rename(bundle_folder / "tokenizer.json")
    edit_config(bundle_folder, format=4)
    with pytest.raises(BundleError, match="made by a newer manyheads"):
        load(bundle_folder)


def test_candidates_of_a_language_model_and_of_a_task_without_any(untrained: Bundle) -> None:
    language = Bundle(task_of("language"), DecodeSettings(method="sample", n_best=2, max_new_tokens=3), {})
    (candidates,) = language.candidates(["the dog"])
    assert len(candidates) == 2
    assert candidates[0].score >= candidates[1].score
    with pytest.raises(BundleError, match=r"^A bundle of task classify generates no text, so it has no candidates\."):
        Bundle(task_of("classify"), DecodeSettings(), {}).candidates(["the dog"])


def test_the_choice_of_a_length_penalty_is_stored(untrained: Bundle, bundle_folder: Path, tmp_path: Path) -> None:
    assert load(bundle_folder).decoding_choice is None
    choice = DecodingChoice("length_penalty", 1.0, "BLEU", {"0.6": 39.4, "1": 39.7}, 400)
    decode = replace(untrained.decode, length_penalty=1.0)
    replace(untrained, decode=decode, decoding_choice=choice).save(tmp_path / "chosen")
    loaded = load(tmp_path / "chosen")
    assert (loaded.decode.length_penalty, loaded.decoding_choice) == (1.0, choice)
    for damaged in ([], {"setting": "length_penalty"}, {**asdict(choice), "scores": {"1": "high"}}):
        edit_config(tmp_path / "chosen", decoding_choice=damaged)
        with pytest.raises(BundleError, match="does not have the expected content"):
            load(tmp_path / "chosen")


def test_a_loaded_bundle_is_in_eval_mode(bundle_folder: Path) -> None:
    assert not any(module.training for module in load(bundle_folder).task.module.modules())
