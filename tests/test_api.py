"""The one-call API: what it returns, and that looking inside never changes the bundle."""

import doctest
import html
import logging
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path

import pytest
import torch

import manyheads as mh
from manyheads import bundle as bundles
from manyheads import walks
from manyheads.api import HeadCards, LensPage
from manyheads.bundle import Bundle
from manyheads.errors import LensError, RecipeError
from manyheads.lens import Head, ablation_gates, heads_of
from manyheads.model import gated
from manyheads.run import Event, Finished, Recipe
from manyheads.settings import to_toml
from manyheads.training import Step

from lens.makers import KINDS, SHORT, TEXTS, WRITERS, task_of

OFF = ["encoder.0.self/1", "decoder.0.cross/0"]
SOURCES = ["The teacher did not buy the red book.", "Two cats are sleeping."]
Tables = Callable[..., dict[str, object]]


def opened(bundle: Bundle) -> mh.InspectableBundle:
    return mh.InspectableBundle(**{each.name: getattr(bundle, each.name) for each in fields(Bundle)})


@pytest.fixture(scope="session")
def folder(untrained: Bundle, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("api") / "bundle"
    untrained.save(path)
    return path


@pytest.fixture
def model(folder: Path) -> Iterator[mh.InspectableBundle]:
    """A bundle that must end with the weights and gates that it began with."""
    loaded = mh.load(folder)
    before = {name: tensor.clone() for name, tensor in loaded.task.module.state_dict().items()}
    yield loaded
    assert all(attention.gate is None for attention in loaded.task.model.attentions())
    assert all(torch.equal(tensor, before[name]) for name, tensor in loaded.task.module.state_dict().items())


def test_docstring_example(untrained: Bundle) -> None:
    result = doctest.testmod(mh.api, extraglobs={"model": opened(untrained)})
    assert result.attempted == 4
    assert result.failed == 0


def test_load_is_the_bundle_of_the_package(model: mh.InspectableBundle, folder: Path) -> None:
    plain = bundles.load(folder)
    assert type(model) is mh.InspectableBundle
    assert isinstance(model, mh.Bundle)
    assert model.predict(SOURCES) == plain.predict(SOURCES)
    for name in ("decode", "recipe", "scores", "kind"):
        assert getattr(model, name) == getattr(plain, name)
    assert mh.load(folder, engine="torch").engine.name == "torch"


def test_train_is_the_function_whatever_was_imported() -> None:
    import manyheads.training.loop  # noqa: F401
    from manyheads.training import Trainer

    assert callable(mh.train)
    assert mh.train.__module__ == "manyheads.api"
    assert Trainer.__module__.startswith("manyheads.training")


# ---- ablation


@pytest.mark.parametrize("kind", KINDS)
def test_ablated_answers_are_those_of_the_gated_model(kind: str) -> None:
    task = task_of(kind)
    bundle = mh.InspectableBundle(task=task, decode=SHORT, recipe={})
    off = [str(head) for head in heads_of(task.model)[::2]]
    texts = [TEXTS[kind], "the [MASK]"]
    with gated(task.model, ablation_gates(task.model, [Head.parse(name) for name in off])):
        expected = task.predict(texts, SHORT)
    ablated = bundle.ablate(off)
    assert ablated.predictions(texts) == expected
    assert all(attention.gate is None for attention in task.model.attentions())
    ablated_ids, whole_ids = ({id(module) for module in one.task.module.modules()} for one in (ablated, bundle))
    assert not ablated_ids & whole_ids
    ablated_memory, whole_memory = (
        [tensor.data_ptr() for tensor in one.task.module.parameters()] for one in (ablated, bundle)
    )
    assert ablated_memory == whole_memory


def test_ablation_changes_the_logits(model: mh.InspectableBundle) -> None:
    ablated = model.ablate(OFF)
    source, target = torch.tensor([[7, 8, 9, 3]]), torch.tensor([[2, 7, 8]])
    with torch.inference_mode():
        before, after = model.task.model(source, target), ablated.task.model(source, target)
        with mh.gated(model.task.model, ablation_gates(model.task.model, map(Head.parse, OFF))):
            expected = model.task.model(source, target)
    assert torch.equal(after, expected)
    assert not torch.allclose(before, after, atol=1e-4)


def test_engine_of_an_ablated_bundle_is_torch_and_says_so(
    model: mh.InspectableBundle, caplog: pytest.LogCaptureFixture
) -> None:
    before = model.predict(SOURCES)
    used = model.engine.used
    with caplog.at_level(logging.INFO):
        ablated = model.ablate(OFF)
        ablated.predict(SOURCES)
    assert (ablated.engine.name, ablated.engine.used, ablated.engine.fallback) == ("torch", "torch", None)
    assert not caplog.records
    assert model.predict(SOURCES) == before
    assert model.engine.used == used


def test_whole_attentions_single_names_and_further_heads(model: mh.InspectableBundle) -> None:
    whole_layer = model.ablate("encoder.0.self")
    assert whole_layer.off == tuple(Head("encoder.0.self", number) for number in range(4))
    more = whole_layer.ablate(["decoder.0.cross/0"])
    assert set(more.off) == {*whole_layer.off, Head("decoder.0.cross", 0)}
    assert more.predict(SOURCES) == model.ablate(["encoder.0.self", "decoder.0.cross/0"]).predict(SOURCES)
    assert model.ablate([]).predict(SOURCES) == model.predict(SOURCES, method="beam")
    with pytest.raises(LensError, match=r"There is no head encoder\.0\.self/9"):
        model.ablate(["encoder.0.self/9"])
    with pytest.raises(LensError, match="is not a head"):
        model.ablate(["head 3"])


def test_ablated_bundle_is_saved_without_its_heads(model: mh.InspectableBundle, tmp_path: Path) -> None:
    ablated = model.ablate(OFF)
    ablated.save(tmp_path / "smaller")
    saved = mh.load(tmp_path / "smaller")
    assert len(heads_of(saved.task.model)) == len(heads_of(model.task.model)) - len(OFF)
    assert saved.predict(SOURCES) == ablated.predict(SOURCES)


def test_ablated_trace(model: mh.InspectableBundle) -> None:
    text, answer = "The cat sees the dog.", "猫看见狗。"
    whole, ablated = (one.trace(text, answer) for one in (model, model.ablate(OFF)))
    assert ablated.difference < 1e-5
    assert ablated.norms("encoder.0.self/1").max() == 0.0
    assert ablated.norms("encoder.0.self/0").max() > 0.0
    assert torch.equal(whole.weights("encoder.0.self/1"), ablated.weights("encoder.0.self/1"))
    assert not torch.allclose(whole.weights("decoder.0.cross/1"), ablated.weights("decoder.0.cross/1"), atol=1e-6)


# ---- looking inside


def test_role_cards(model: mh.InspectableBundle) -> None:
    cards = model.heads(sample=12)
    assert isinstance(cards, HeadCards)
    assert [card.head for card in cards] == [str(head) for head in heads_of(model.task.model)]
    assert cards["decoder.0.cross/1"] == cards[9] == cards[9:10][0]
    assert len(cards) == 12
    assert cards.report.n_texts <= 12
    assert cards.with_role("alignment") == [card for card in cards if card.role == "alignment"]
    with pytest.raises(LensError, match=r"There is no head decoder\.7\.cross/1"):
        cards["decoder.7.cross/1"]


def test_role_cards_are_a_table(model: mh.InspectableBundle) -> None:
    cards = model.heads(sample=12)
    lines = repr(cards).splitlines()
    assert lines[0].split() == ["head", "role", "value", "95", "%", "baseline", "random", "reach"]
    assert [line.split()[0] for line in lines[1:]] == [card.head for card in cards]
    assert max(map(len, lines)) <= 100
    assert cards._repr_html_().count("<tr>") == 13


@pytest.mark.parametrize("kind", KINDS)
def test_reprs_are_one_short_line(kind: str) -> None:
    bundle = mh.InspectableBundle(task=task_of(kind), decode=SHORT, recipe={})
    answer = "the dog " * 8 if kind in WRITERS else None
    traced = bundle.trace(TEXTS[kind] * 2, answer)
    attention = next(iter(traced.attentions))
    walked = mh.walk(bundle, TEXTS[kind], f"{attention}/1", answer=answer)
    everything = bundle.ablate([str(head) for head in heads_of(bundle.task.model)])
    for each in (bundle, everything, traced, traced[attention], walked):
        assert len(repr(each)) < 200
        assert "\n" not in repr(each)
        assert "tensor" not in repr(each)
        assert "array" not in repr(each)
    assert repr(walked).startswith(f"Walk({attention}/1, query 1 ")


def test_walk_by_the_name_of_a_head(model: mh.InspectableBundle) -> None:
    ours = mh.walk(model, SOURCES[0], "decoder.0.cross/2", answer="猫看见狗。", query="2")
    theirs = walks.walk(model, SOURCES[0], layer="decoder.0.cross", head=2, answer="猫看见狗。", query="2")
    assert (ours.weighted_sum == theirs.weighted_sum).all()
    assert (ours.head, ours.query, ours.attention) == (2, 2, "decoder.0.cross")
    assert mh.walk(model, SOURCES[0]).attention == "encoder.0.self"


def test_walk_of_a_text_alone_is_that_of_the_toy_model() -> None:
    walked = mh.walk("I love cats", query="love")
    assert (walked.softmax.weights == walks.walk_sentence("I love cats", query="love").softmax.weights).all()
    assert mh.walk("I love cats", head="decoder.0.self/1").attention == "decoder.0.self"
    with pytest.raises(TypeError, match="is a bundle, not its path"):
        mh.walk("runs/quickstart/bundle", "I love cats")


def test_walk_through_a_bundle_needs_a_text(model: mh.InspectableBundle) -> None:
    with pytest.raises(TypeError, match="needs a text"):
        mh.walk(model)


def test_notebook_shows_pictures_and_tables(model: mh.InspectableBundle) -> None:
    traced = model.trace('<b>"cats"</b>', "猫")
    shown = traced._repr_html_()
    assert shown.startswith("<img ")
    assert "data:image/svg+xml;base64," in shown
    assert "<b>" not in shown
    table = mh.walk(model, "<b> cats", "encoder.0.self/1")._repr_html_()
    assert "<b> cats" not in table
    assert table.count("<tr>") > 2
    assert "&lt;" in table
    assert "EOS" in table
    assert "</s>" not in html.unescape(table)
    assert "<script" not in table + shown


def test_trace_of_the_package_is_that_of_the_bundle(model: mh.InspectableBundle) -> None:
    one, other = mh.trace(model, SOURCES[0], "猫"), model.trace(SOURCES[0], "猫")
    assert torch.equal(one.weights("decoder.0.cross/1"), other.weights("decoder.0.cross/1"))


def test_lens_page_is_one_iframe(monkeypatch: pytest.MonkeyPatch, model: mh.InspectableBundle, tmp_path: Path) -> None:
    page = "<!doctype html><script>\"</iframe>\" + '&'</script>"
    monkeypatch.setattr("manyheads.serve.lens_page.lens_file.lens_page", lambda bundle, texts: page)
    shown = model.lens("Two cats are sleeping.")
    assert repr(shown) == "LensPage(texts=('Two cats are sleeping.',))"
    (document,) = re.findall(r'^<iframe [^<>]*srcdoc="([^"<>]*)"></iframe>$', shown._repr_html_())
    assert html.unescape(document) == page
    shown.save(tmp_path / "lens.html")
    assert (tmp_path / "lens.html").read_text("utf-8") == page
    with pytest.raises(LensError, match="Give a text"):
        model.lens()


def test_lens_page_has_the_text(model: mh.InspectableBundle) -> None:
    page = model.lens("Two cats are sleeping.")
    assert isinstance(page, LensPage)
    assert "Two cats are sleeping." in page.html
    assert "decoder.0.cross" in page.html


# ---- pruning and training


def test_pruned_bundle_is_smaller_and_comes_with_its_cost(model: mh.InspectableBundle) -> None:
    stages: list[tuple[str, int, int]] = []
    result = model.prune(0.1, sample=4, max_cost=100.0, progress=lambda *stage: stages.append(stage))
    assert isinstance(result.bundle, mh.InspectableBundle)
    assert len(heads_of(result.bundle.task.model)) == 10
    assert len(result.report.order) == 2
    assert result.trade_off.change.n_texts == 4
    assert result.bundle.engine is not model.engine
    assert ("removing heads", 2, 2) in stages
    assert result.bundle.predict(SOURCES, method="greedy") == model.ablate(result.report.order).predict(
        SOURCES, method="greedy"
    )
    with pytest.raises(LensError, match="heads prune --method gates"):
        model.prune(0.1, method="gates")


def test_training_from_a_table(recipe_table: Tables, tmp_path: Path) -> None:
    events: list[Event] = []
    model = mh.train(recipe_table(), tmp_path / "run", progress=events.append)
    assert type(model) is mh.InspectableBundle
    assert [event.step for event in events if isinstance(event, Step)] == [1, 2, 3, 4, 5, 6]
    assert isinstance(events[-1], Finished)
    assert model.predict(SOURCES) == mh.load(tmp_path / "run" / "bundle").predict(SOURCES)
    assert (tmp_path / "run" / "report.html").exists()


def test_training_from_a_file_into_its_own_folder(
    recipe_table: Tables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mail.toml").write_text(to_toml(recipe_table()), "utf-8")
    steps: list[int] = []
    keep: Callable[[Event], None] = lambda event: steps.append(event.step) if isinstance(event, Step) else None  # noqa: E731
    mh.train("mail.toml", changes=["train.steps=4"], progress=keep)
    assert steps == [1, 2, 3, 4]
    assert (tmp_path / "runs" / "mail" / "bundle").is_dir()


def test_interrupted_training_resumes_with_the_same_call(recipe_table: Tables, tmp_path: Path) -> None:
    recipe = Recipe.from_table(recipe_table())
    steps: list[int] = []

    def interrupt(event: Event) -> None:
        if isinstance(event, Step):
            steps.append(event.step)
            if event.step == 3 and steps.count(3) == 1:
                os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt, match="Stopped at step 3"):
        mh.train(recipe, tmp_path / "run", progress=interrupt)
    mh.train(recipe, tmp_path / "run", progress=interrupt)
    assert steps == [1, 2, 3, 4, 5, 6]


def test_training_in_a_thread(recipe_table: Tables, tmp_path: Path) -> None:
    made: list[mh.InspectableBundle] = []
    thread = threading.Thread(target=lambda: made.append(mh.train(recipe_table(), tmp_path / "run")))
    thread.start()
    thread.join()
    assert made


def test_training_needs_a_folder_for_a_table(recipe_table: Tables) -> None:
    with pytest.raises(RecipeError, match="Give the run folder"):
        mh.train(recipe_table())
    with pytest.raises(RecipeError, match="Change the recipe itself"):
        mh.train(recipe_table(), "run", changes=["train.steps=4"])
