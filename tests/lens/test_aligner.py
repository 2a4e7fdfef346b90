"""Alignment heads, chosen by gold or by occlusion."""

from dataclasses import replace

import numpy as np
import pytest

from manyheads.bundle import Bundle
from manyheads.decode import DecodeSettings
from manyheads.errors import LensError
from manyheads.lens.aligner import choose_aligner, fit_aligner, occlusion_links, split_words
from manyheads.lens.traces.encoded_examples import encode_examples
from manyheads.tasks.lens_examples import Example

from lens.makers import task_of


def example_of(source: str, target: str) -> Example:
    return Example((split_words(source), split_words(target)))


def test_punctuation_and_chinese_characters_are_separate_words() -> None:
    assert split_words("It's 猫咪.").words == ("It", "'s", "猫", "咪", ".")


def test_occlusion_links_existing_words() -> None:
    task = task_of("seq2seq")
    (encoded,) = encode_examples(task, [example_of("the cat sat", "the mat")]).examples
    # An untrained model may have no links; those it has must be between existing words.
    assert all(i < 3 and j < 2 for i, j in occlusion_links(task.model, encoded))


def test_gold_selects_the_heads_that_agree_with_it(untrained: Bundle) -> None:
    task = untrained.task
    texts = ["the cat sat on the mat", "no dog ran to the red mat"]
    encoded_examples = encode_examples(task, [example_of(text, text) for text in texts]).examples
    plain = fit_aligner(task, encoded_examples)  # type: ignore[arg-type]
    assert plain.chosen_by == "occlusion"
    # The gold is the alignment of some heads, so these heads or equivalent ones must be chosen.
    expected = plain.align(texts, texts)
    gold = [
        replace(encoded, example=replace(encoded.example, sure=frozenset(own), possible=frozenset(own)))
        for encoded, own in zip(encoded_examples, expected, strict=True)
    ]
    chosen = fit_aligner(task, gold)  # type: ignore[arg-type]
    assert chosen.chosen_by == "gold"
    assert chosen.agreement == pytest.approx(1.0)
    assert chosen.align(texts, texts) == expected


def test_texts_without_words_or_too_long_have_no_links(untrained: Bundle) -> None:
    aligner = choose_aligner(untrained, "bundle")
    assert aligner.n_texts == 60
    links = aligner.align(["", "Tom sleeps.", "Tom " * 60], ["", "汤姆睡觉。", "汤姆"])
    assert links[0] == links[2] == []
    assert all(i < 3 and j < 5 for i, j in links[1])
    assert np.shape(aligner.heads)[0] >= 1


def test_parts_are_aligned_on_their_own(untrained: Bundle) -> None:
    """The links of a part are those of the part alone, counted in words of the whole texts."""
    aligner = choose_aligner(untrained, "bundle")
    sources, targets = ["The cat sleeps.", "Tom is here."], ["猫睡觉。", "汤姆在。"]
    alone = aligner.align(sources, targets)
    assert all(alone)
    parts = [(0, 15, 0, 4), (16, 28, 4, 8)]
    [links] = aligner.align([" ".join(sources)], ["".join(targets)], [parts])
    assert links == alone[0] + [(i + 4, j + 4) for i, j in alone[1]]


def test_model_without_cross_attention_cannot_align() -> None:
    bundle = Bundle(task_of("language"), DecodeSettings(), {})
    with pytest.raises(LensError, match="runs/x is a bundle of task language and has no cross-attention"):
        choose_aligner(bundle, "runs/x")
