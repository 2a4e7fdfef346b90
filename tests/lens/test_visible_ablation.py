"""The search for a head whose absence is seen at once: what it finds is what the model answers."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch

from manyheads.api import InspectableBundle
from manyheads.bundle import Bundle
from manyheads.decode import DecodeSettings
from manyheads.errors import LensError
from manyheads.lens import Head, find_heads
from manyheads.lens.traces.examples import sample_examples
from manyheads.lens.visible_ablation import (
    VisibleAblation,
    _WordCounts,
    find_visible_ablation,
    texts_without_remarks,
)
from manyheads.model import Transformer
from manyheads.tasks.lens_examples import Example, plain_text

from model.makers import shaken

COUNTS = _WordCounts(
    {"那": 90, "本": 4, "书": 3, "红色": 3, "给": 2, "买": 2, "戴": 2, "穿": 2, "。": 100, "的": 60},
    100,
    {"买": {"buy", "bought"}, "给": {"give"}, "戴": {"wears"}, "穿": {"wore", "wears"}},
)


def with_visible_heads(untrained: Bundle) -> Bundle:
    """Return a bundle with random weights so large that single heads matter."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        model = shaken(Transformer(untrained.task.model.settings)).eval()
    task: Any = replace(untrained.task, model=model)  # type: ignore[type-var]
    return replace(untrained, task=task)


@torch.no_grad()
def with_idle_heads(untrained: Bundle) -> Bundle:
    """Return a bundle whose heads add nothing."""
    model = Transformer(untrained.task.model.settings).eval()
    for attention in model.attentions():
        attention.output.weight.zero_()
    task: Any = replace(untrained.task, model=model)  # type: ignore[type-var]
    return replace(untrained, task=task)


@pytest.fixture(scope="module")
def bundle(untrained: Bundle) -> Iterator[Bundle]:
    """A bundle that must end without gates."""
    made = with_visible_heads(untrained)
    yield made
    assert all(attention.gate is None for attention in made.task.model.attentions())


def test_what_is_found_is_what_the_model_answers(bundle: Bundle) -> None:
    found = find_visible_ablation(bundle)
    assert found is not None
    whole = InspectableBundle(**{name: getattr(bundle, name) for name in bundle.__dataclass_fields__})
    assert whole.predict([found.text]) == [found.answer]
    assert whole.ablate([found.head]).predict([found.text]) == [found.without]
    assert found.answer != found.without
    assert found.before in found.answer
    assert found.after in found.without
    assert find_visible_ablation(bundle) == found == whole.visible_ablation()


def test_no_head_changes_an_answer(untrained: Bundle) -> None:
    idle = with_idle_heads(untrained)
    assert find_visible_ablation(idle) is None
    whole = InspectableBundle(task=idle.task, decode=idle.decode, recipe=idle.recipe)
    with pytest.raises(LensError, match=r"No single head changes an answer\. .*heads importance"):
        whole.visible_ablation()


def test_samples_are_refused(untrained: Bundle) -> None:
    with pytest.raises(LensError, match="samples its answers"):
        find_visible_ablation(replace(untrained, decode=DecodeSettings(method="sample")))


@pytest.mark.parametrize(
    ("answer", "without", "difference"),
    [
        ("买那本红色的书。", "给那本红色的书。", ("买", "给")),
        ("买那本红色的书。", "买那本书。", ("红色的", "")),
        ("买那本书。", "买那本红色的书。", ("", "红色的")),
        ("I see a cat.", "I see two dogs.", ("a cat", "two dogs")),
        ("I see a cat.", "", ("I see a cat.", "")),
        ("红色", "红书", ("红色", "红书")),
    ],
)
def test_difference_is_in_whole_words(answer: str, without: str, difference: tuple[str, str]) -> None:
    assert COUNTS.difference(answer, without) == difference


def test_words_and_what_they_translate_are_those_of_the_examples(bundle: Bundle) -> None:
    words = _WordCounts.of(sample_examples(bundle, 200))
    assert words.n_texts == 200
    assert "who" in words.translated["谁"]
    assert words.counts["。"] > 100
    assert not _WordCounts.of([Example((plain_text("a"),))]).counts


def change(before: str, after: str, text: str = "A text.") -> VisibleAblation:
    return VisibleAblation(Head("decoder.0.cross", 0), text, before, after, *COUNTS.difference(before, after))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("买书。", "给书。", True),
        ("红色书", "给书", True),
        ("那书", "给书", False),  # 那 is a function word
        ("戴书", "穿书", False),  # both translate "wears"
        ("买书。", "红书。", False),  # no word
        ("买书。", "买书", False),
        ("买书。", "红色的书。", False),  # two words
    ],
)
def test_clear_is_one_content_word_that_becomes_another(before: str, after: str, expected: bool) -> None:
    assert COUNTS.is_clear(change(before, after)) == expected
    labels = _WordCounts()  # without references, any word has content
    assert labels.is_clear(VisibleAblation(Head("encoder.0.self", 0), "A text.", "good", "bad", "good", "bad"))


def test_clear_changes_rank_first_then_missing_words_then_small_changes() -> None:
    ranked = [
        change("红色买", "红色给", "A."),
        change("红色买", "红色给", "A longer text."),
        change("买书", "书"),
        change("那书", "书"),  # a function word is missing
        change("那书买", "给红色的"),
    ]
    assert sorted([ranked[number] for number in (3, 1, 4, 2, 0)], key=COUNTS.rank) == ranked


def test_texts_with_unseen_words_or_a_low_confidence_are_left_out(untrained: Bundle) -> None:
    class Stub:
        mask_text = ""

        def predict(self, texts: list[str], settings: DecodeSettings) -> list[object]:
            return [type("Answer", (), {"is_low_confidence": "odd" in text})() for text in texts]

    class Known:
        def unseen(self, text: str) -> list[str]:
            return ["new"] if "new" in text else []

    stubbed: Any = replace(untrained, task=Stub(), seen_words=Known())  # type: ignore[arg-type]
    assert texts_without_remarks(stubbed, ["a new one", "plain", "odd", "plain too"]) == ["plain", "plain too"]


def test_all_heads_are_tried_from_the_last_attention(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Head] = []

    def no_change(bundle: Bundle, head: Head, *rest: object) -> Iterator[VisibleAblation]:
        tried.append(head)
        return iter(())

    monkeypatch.setattr("manyheads.lens.visible_ablation._changes", no_change)
    assert find_visible_ablation(bundle) is None
    model = bundle.task.model
    names = [attention.name for attention in model.attentions()]
    assert tried == [head for name in reversed(names) for head in find_heads(model, [name])]
    tried.clear()
    monkeypatch.setattr("manyheads.lens.visible_ablation._N_HEADS", 6)
    find_visible_ablation(bundle)
    assert [str(head) for head in tried] == [f"{names[-1]}/{n}" for n in range(4)] + [
        f"{names[-2]}/{n}" for n in range(2)
    ]
