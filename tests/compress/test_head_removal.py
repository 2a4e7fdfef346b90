from dataclasses import replace

import pytest
import torch

from manyheads import load
from manyheads.bundle import Bundle
from manyheads.compress.head_removal import pruned_bundle, remove_heads
from manyheads.errors import LensError, RecipeError
from manyheads.lens import find_heads
from manyheads.lens.heads import ablation_gates
from manyheads.model import ModelSettings, Transformer, gated
from manyheads.run import read_recipe
from manyheads.run.warm_start import warm_start
from manyheads.settings import build, to_table, to_toml
from manyheads.tasks import Seq2Seq

from model.makers import VIEWS, describe, largest_difference, product_of, random_ids, seeded, shaken, small

FOUR = {"width": 16, "n_heads": 4}
SETTINGS = [
    *product_of(
        width=[16],
        n_heads=[4],
        scores=["scaled-dot", "cosine", "bilinear", "additive", "dense-synthesizer", "random-synthesizer"],
        positions=["alibi"],
    ),
    *product_of(width=[16], n_heads=[4], projections=["tied", "shared"], attention_bias=[False, True]),
    *product_of(width=[16], n_heads=[4], n_key_heads=[1, 2], attention_bias=[True], positions=["rotary"]),
    small(**FOUR, n_encoder_layers=1, head_width=6, value_width=3, attention_bias=True, norm_placement="pre"),
]
# One head of one attention, several of others, all but one, all.
REMOVED = ["encoder.0.self/1", "decoder.0.self/0", "decoder.0.self/3", "decoder.1.self", "decoder.0.cross/0"]
REMOVED += ["decoder.0.cross/1", "decoder.0.cross/3", "decoder.1.cross"]


def task_of(settings: ModelSettings, untrained: Bundle) -> Seq2Seq:
    torch.manual_seed(0)
    return replace(untrained.task, model=shaken(Transformer(settings)))


def run(model: Transformer) -> torch.Tensor:
    is_real = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    return model(random_ids(2, 5), random_ids(2, 4, seed=1), source_is_real=is_real)


@pytest.mark.parametrize("settings", SETTINGS, ids=describe)
def test_pruned_model_equals_the_whole_model_with_these_heads_ablated(
    settings: ModelSettings, untrained: Bundle
) -> None:
    task = task_of(settings, untrained)
    with gated(task.model, ablation_gates(task.model, find_heads(task.model, REMOVED))):
        expected = run(task.model)
    smaller = remove_heads(task, REMOVED).model
    assert largest_difference(run(smaller), expected) < 1e-5
    assert smaller.n_parameters < task.model.n_parameters
    assert "decoder.1.cross" not in [attention.name for attention in smaller.attentions()]


def test_heads_can_be_removed_step_by_step(untrained: Bundle) -> None:
    task = task_of(small(**FOUR, positions="alibi", n_key_heads=2), untrained)
    at_once = remove_heads(task, ["encoder.0.self/0", "encoder.0.self/2", "decoder.0.cross"]).model
    first = remove_heads(task, ["encoder.0.self/0", "decoder.0.cross/2"])
    step_by_step = remove_heads(first, ["encoder.0.self/1", "decoder.0.cross"]).model  # number 2 is now number 1
    assert step_by_step.settings == at_once.settings
    assert step_by_step.settings.kept_heads == {"encoder.0.self": (1, 3), "decoder.0.cross": ()}
    assert torch.equal(run(step_by_step), run(at_once))


def test_attention_without_heads_adds_only_its_bias(untrained: Bundle) -> None:
    task = task_of(small(attention_bias=True), untrained)
    smaller = remove_heads(task, ["encoder.0.self"]).model
    x = torch.randn(2, 3, 8, generator=seeded())
    bias = task.model.encoder[0].attention.output.bias
    assert torch.equal(smaller.encoder[0].attention(x, x, VIEWS["bidirectional"]), bias.expand(2, 3, 8))


def test_pruned_bundle_is_an_ordinary_bundle(untrained: Bundle, tmp_path) -> None:
    heads = ["encoder.0.self/0", "decoder.0.cross/1", "decoder.0.self"]
    smaller = pruned_bundle(untrained, remove_heads(untrained.task, heads))
    smaller.save(tmp_path / "smaller")
    again = load(tmp_path / "smaller")
    assert again.task.model.settings.kept_heads == {
        "encoder.0.self": (1, 2, 3),
        "decoder.0.cross": (0, 2, 3),
        "decoder.0.self": (),
    }
    assert again.recipe["model"]["kept_heads"]["decoder.0.self"] == []
    texts = ["the cat sleeps", "a dog sees the small house"]
    with gated(untrained.task.model, ablation_gates(untrained.task.model, find_heads(untrained.task.model, heads))):
        expected = untrained.candidates(texts, method="beam", beam=3)
    for candidates, gold in zip(again.candidates(texts, method="beam", beam=3), expected, strict=True):
        assert candidates[0].text == gold[0].text
        assert candidates[0].log_probability == pytest.approx(gold[0].log_probability, abs=1e-4)


@pytest.mark.parametrize(("kind", "languages"), [("seq2seq", "en-zh"), ("classify", "en"), ("language", "en")])
def test_warm_start_from_a_pruned_bundle(kind: str, languages: str, untrained: Bundle, tmp_path) -> None:
    smaller = remove_heads(untrained.task, ["encoder.0.self/0", "decoder.0.cross", "decoder.0.self/3"])
    pruned_bundle(untrained, smaller).save(tmp_path / "smaller")
    path = tmp_path / "recipe.toml"
    path.write_text(f'init_from = "smaller"\n[data]\nbuiltin = "{languages}"\n[task]\nkind = "{kind}"\n', "utf-8")
    model = Transformer(read_recipe(path).model)
    n_adopted, n_all = warm_start(model, smaller.model, "smaller")
    assert n_adopted == n_all
    assert {one.name: one.heads.n_heads for one in model.attentions()} == {
        name: n
        for name, n in {"encoder.0.self": 3, "decoder.0.self": 3}.items()
        if name.split(".")[0] in model.settings.shape.split("-")
    }


def test_removing_all_heads_is_refused(untrained: Bundle) -> None:
    with pytest.raises(LensError, match=r"All 12 heads would be removed\. Keep at least one: remove at most 11\."):
        remove_heads(untrained.task, ["encoder.0.self", "decoder.0.self", "decoder.0.cross"])


def test_model_without_projections_cannot_be_pruned(untrained: Bundle) -> None:
    with pytest.raises(LensError, match=r'no projections \(model\.projections = "none"\)'):
        remove_heads(task_of(small(projections="none"), untrained), ["encoder.0.self/0"])


@pytest.mark.parametrize(
    ("kept", "message"),
    [
        (
            {"encoder.0.slf": (0,)},
            r'kept_heads\."encoder\.0\.slf" = \[0\] names an unknown attention.*mean encoder\.0\.self\?',
        ),
        ({"decoder.2.self": (0,)}, r"names an unknown attention"),
        ({"encoder.0.self": (2,)}, r"must contain head numbers from 0 to 1\."),
        ({"encoder.0.self": (0, 0)}, r"must contain each head once, in ascending order\."),
        ({"encoder.0.self": (1, 0)}, r"must contain each head once, in ascending order\."),
        ({"encoder.0.self": 1}, r'kept_heads\."encoder\.0\.self" = 1 should be a list\.'),
        ({"encoder.0.self": ("a",)}, r'= "a" should be a whole number\.'),
        ([0, 1], r"model\.kept_heads = \[0, 1\] should be a table: write \[model\.kept_heads\]\."),
    ],
)
def test_invalid_kept_heads_are_refused(kept: object, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        build(ModelSettings, {**to_table(small()), "kept_heads": kept}, "model.")


def test_kept_heads_need_projections() -> None:
    with pytest.raises(RecipeError, match=r"model\.kept_heads needs W\^O"):
        small(projections="none", kept_heads={"encoder.0.self": (0,)})


def test_kept_heads_of_a_whole_model_are_not_written() -> None:
    assert "kept_heads" not in to_table(small())
    assert "kept_heads" not in to_toml(to_table(small()))
