"""Warm starts: copied weights, frozen parts, and models that do not fit."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from manyheads.bundle import load
from manyheads.errors import BundleError, RecipeError
from manyheads.model import ModelSettings, Transformer
from manyheads.run import Finished, Prepared, read_recipe, run
from manyheads.run.warm_start import freeze, warm_start
from manyheads.text.tokens.seen_words import SeenWords

SIZES = {"vocab_size": 50, "width": 16, "n_heads": 2, "feed_forward_width": 32, "n_encoder_layers": 2}
TABLE = """
[data]
builtin = "en"
builtin_rows = 1000
[task]
kind = "classify"
[tokenizer]
vocab_size = 400
[train]
steps = {steps}
batch_tokens = 300
warmup = 1
validate_every = 100
save_every = 100
average_snapshots = 1
"""
MODEL = '[model]\npreset = "tiny"\nwidth = 16\nn_encoder_layers = 2\nfeed_forward_width = 32\nmax_length = 64\n'


def model(shape: str, **changes: int) -> Transformer:
    return Transformer(ModelSettings(shape=shape, n_decoder_layers=1, **(SIZES | changes)))  # type: ignore[arg-type]


def test_encoder_weights_are_copied_into_an_encoder_decoder() -> None:
    encoder, translator = model("encoder"), model("encoder-decoder")
    before = translator.decoder[0].feed_forward.state_dict()
    before = {name: value.clone() for name, value in before.items()}
    n_copied, n_all = warm_start(translator, encoder, "there")
    assert 0 < n_copied < n_all
    ids, is_real = torch.arange(2, 10)[None], torch.ones(1, 8, dtype=torch.bool)
    translator.eval()
    encoder.eval()
    assert torch.equal(translator.encode(ids, is_real), encoder.encode(ids, is_real))
    after = translator.decoder[0].feed_forward.state_dict()
    assert all(torch.equal(value, after[name]) for name, value in before.items())


def test_model_of_another_size_is_refused_and_nothing_is_copied() -> None:
    small, large = model("encoder"), model("encoder", width=32)
    before = large.encoder[0].state_dict()
    before = {name: value.clone() for name, value in before.items()}
    with pytest.raises(BundleError, match=r"there does not fit this model: .* is \(50, 16\) there, \(50, 32\) here"):
        warm_start(large, small, "there")
    assert all(torch.equal(value, large.encoder[0].state_dict()[name]) for name, value in before.items())


def test_freeze_selects_parameters_by_prefix() -> None:
    frozen = model("encoder")
    freeze(frozen, ["encoder.1", "source_embedding"])
    trainable = {name for name, value in frozen.named_parameters() if value.requires_grad}
    assert trainable and not any(name.startswith(("encoder.1.", "source_embedding")) for name in trainable)
    assert any(name.startswith("encoder.0.") for name in trainable)
    with pytest.raises(RecipeError, match=r'freeze = "encoder.7" names no part of the model. Did you mean encoder'):
        freeze(frozen, ["encoder.7"])
    with pytest.raises(RecipeError, match=r"Did you mean source_embedding\?"):
        freeze(frozen, ["source_embeding"])
    with pytest.raises(RecipeError, match="leaves no parameter to train"):
        freeze(model("encoder"), ["encoder", "source_embedding"])


def test_run_with_init_from_and_freeze(tmp_path: Path) -> None:
    (tmp_path / "first.toml").write_text(TABLE.format(steps=3) + MODEL)
    *_, first = run(read_recipe(tmp_path / "first.toml"), tmp_path / "first")
    assert isinstance(first, Finished)
    trained = load(first.bundle)
    replace(trained, seen_words=SeenWords.of(["xyzzy"])).save(first.bundle)
    text = 'init_from = "first/bundle"\nfreeze = ["encoder"]\n' + TABLE.format(steps=5)
    (tmp_path / "second.toml").write_text(text)
    events = list(run(read_recipe(tmp_path / "second.toml"), tmp_path / "second"))
    prepared = next(event for event in events if isinstance(event, Prepared))
    assert "weights from" in prepared.warm_start
    one, two = (load(tmp_path / name / "bundle") for name in ("first", "second"))
    assert two.unseen_words("The hotel is xyzzy qwertz") == ["qwertz"]  # the words of both trainings were seen
    assert one.task.tokenizer.to_bytes() == two.task.tokenizer.to_bytes()
    assert one.task.model.settings == two.task.model.settings
    weights, others = one.task.model.state_dict(), two.task.model.state_dict()
    same = {name for name, value in weights.items() if torch.equal(value, others[name])}
    assert {name for name in weights if name.startswith("encoder.")} <= same
    assert "source_embedding.token_embedding.weight" not in same


def test_missing_bundle(tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text('init_from = "nowhere"\n' + TABLE.format(steps=5))
    with pytest.raises(BundleError, match="nowhere"):
        read_recipe(tmp_path / "recipe.toml")


def test_run_finishes_if_the_bundle_is_moved_while_it_trains(tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    path.write_text(TABLE.format(steps=2) + MODEL)
    *_, first = run(read_recipe(path), tmp_path / "one")
    assert isinstance(first, Finished)
    path.write_text(f'init_from = "{first.bundle}"\n' + TABLE.format(steps=2) + MODEL)
    event = None
    for event in run(read_recipe(path), tmp_path / "two"):
        if isinstance(event, Prepared):
            first.bundle.rename(tmp_path / "moved")
    assert isinstance(event, Finished)
    assert load(event.bundle).seen_words is None  # those of the first training are not known
