"""Role cards of heads whose attention is made by hand, and of models that have learnt nothing."""

import numpy as np
import pytest
import torch

from manyheads.corpora import Relation
from manyheads.errors import LensError
from manyheads.lens.encoded_examples import EncodedExample, Floats, encode_examples
from manyheads.lens.examples import Example, builtin_examples, plain_text
from manyheads.lens.head_counts import HeadCounts, collect_counts, count_heads, for_each_map, tabulate
from manyheads.lens.measures import offset_maps, uniform_map
from manyheads.lens.roles import UNKNOWN, HeadReport, Statistic, as_displayed, assign_roles, make_report
from manyheads.model import Tap
from manyheads.text.tokenizer import BOS

from lens.makers import task_of
from lens.test_measures import positions

SIZE = 12


def texts_of(count: int = 30) -> list[EncodedExample]:
    """Texts of one length in which word 2 has its object at a place that differs."""
    found = []
    for number in range(count):
        ids = [BOS, *(10 + (number * 7 + place) % 50 for place in range(SIZE - 1))]
        found.append(
            EncodedExample(Example((plain_text("…"),)), (positions(ids, (Relation("object", 3 + number % 7, 2),)),))
        )
    return found


def counts_of(maps: list[list[Floats]], texts: list[EncodedExample]) -> HeadCounts:
    """As if heads had looked so: maps of each text, of each head."""
    counts = [count_heads("decoder.self", own, own, text) for own, text in zip(map(np.stack, maps), texts, strict=True)]
    return tabulate({"decoder.0.self": counts}, texts)


def hand_made(text: EncodedExample) -> list[Floats]:
    previous = offset_maps(SIZE, SIZE, [-1], is_causal=True)[0]
    begin = np.zeros((SIZE, SIZE))
    begin[:, 0] = 1.0
    finder = uniform_map(SIZE, SIZE, is_causal=True)[0].copy()
    for relation in text.sides[0].relations:
        finder[relation.word + 1] = 0.0  # BOS is before the words
        finder[relation.word + 1, relation.head + 1] = 1.0
    return [previous, begin, finder, uniform_map(SIZE, SIZE, is_causal=True)[0]]


def report_of(model: list[list[Floats]], control: list[list[Floats]], texts: list[EncodedExample]) -> HeadReport:
    return assign_roles(counts_of(model, texts), [counts_of(control, texts)], seeds=(1,))


def test_each_head_is_named_for_what_it_does() -> None:
    texts = texts_of()
    even = [[uniform_map(SIZE, SIZE, is_causal=True)[0]] * 4 for _ in texts]
    report = report_of([hand_made(text) for text in texts], even, texts)
    names = [[role.name for role in card.roles] for card in report.cards]
    assert [card.head for card in report.cards] == [f"decoder.0.self/{number}" for number in range(4)]
    assert names[0][:1] == ["positional -1"] or names[0][:1] == ["previous-token"]
    assert {"previous-token", "positional -1"} <= set(names[0])
    assert names[1] == ["attention-sink"]
    assert names[2] == ["object>"]
    assert report.cards[3].role == UNKNOWN
    assert report.cards[3].reach == "global"
    assert report.cards[0].reach == "local"
    assert report.n_texts == 30
    statistic = report.cards[2].statistics["object>"]
    assert (statistic.value, statistic.low, statistic.n) == (1.0, 1.0, 30)
    assert statistic.baseline < 0.3
    assert statistic.baseline_by.startswith("offset")
    assert report.with_role("attention-sink") == [report.cards[1]]


def test_a_role_that_the_control_reaches_is_not_given() -> None:
    texts = texts_of()
    maps = [hand_made(text) for text in texts]
    report = report_of(maps, maps, texts)
    assert [card.role for card in report.cards] == [UNKNOWN] * 4
    assert {"previous-token", "attention-sink", "object>"} <= set(report.controls)
    assert report.controls["attention-sink"] == ("seed 1, decoder.0.self/1",)


def test_a_figure_of_few_cases_makes_no_role() -> None:
    texts = texts_of(12)  # twelve objects: too few
    even = [[uniform_map(SIZE, SIZE, is_causal=True)[0]] * 4 for _ in texts]
    report = report_of([hand_made(text) for text in texts], even, texts)
    assert report.cards[2].role == UNKNOWN
    assert report.cards[2].statistics["object>"].value == 1.0
    assert report.cards[1].role == "attention-sink"


def test_a_share_just_above_what_is_asked_for_is_not_enough_if_the_interval_is_wide() -> None:
    texts = texts_of()
    begin = np.zeros((SIZE, SIZE))
    begin[:, 0] = 1.0
    even = uniform_map(SIZE, SIZE, is_causal=True)[0]
    # In half of the texts it looks at BOS only: more than half of its weight, but not surely so.
    report = report_of([[begin if number % 2 else even] for number in range(30)], [[even] for _ in texts], texts)
    statistic = report.cards[0].statistics["bos"]
    assert statistic.value > 0.5 > statistic.low
    assert report.cards[0].role == UNKNOWN


@pytest.mark.parametrize("kind", ["seq2seq", "language", "masked", "tag", "classify"])
def test_models_that_know_nothing_are_named_for_nothing(kind: str) -> None:
    task = task_of(kind)
    pair = (plain_text("the cat sat on the mat"), plain_text("the dog ran to the mat"))
    texts = [Example(pair if kind == "seq2seq" else pair[number % 2 :][:1]) for number in range(6)]
    report = make_report(task.model, encode_examples(task, texts), seeds=(1, 2))
    assert len(report.cards) == sum(attention.heads.n_heads for attention in task.model.attentions())
    assert report.seeds == (1, 2)
    assert not any(role.name in ("alignment", "antecedent", "object>") for card in report.cards for role in card.roles)


def test_maps_are_those_of_the_model_without_padding() -> None:
    task = task_of("seq2seq")
    texts = [
        Example((plain_text("the cat"), plain_text("a"))),
        Example((plain_text("no dog sat on the red mat"), plain_text("the mat ran"))),
    ]
    read = encode_examples(task, texts).examples
    together: dict[tuple[int, str], Floats] = {}
    for_each_map(task.model, read, lambda number, name, weights, norms: together.update({(number, name): weights}))
    for number, encoded in enumerate(read):
        for_each_map(
            task.model,
            [encoded],
            lambda _, name, weights, norms, number=number: np.testing.assert_allclose(
                together[number, name], weights, atol=1e-6
            ),
        )
    assert all(np.allclose(weights.sum(-1), 1.0) for weights in together.values())
    assert together[0, "decoder.0.cross"].shape[1:] == (len(read[0].sides[1].ids), len(read[0].sides[0].ids))


def test_norms_are_the_lengths_of_what_arrives() -> None:
    task = task_of("seq2seq")
    read = encode_examples(task, [Example((plain_text("the cat sat"), plain_text("the mat")))]).examples
    tap = Tap()
    ids = [torch.from_numpy(side.ids)[None] for side in read[0].sides]
    task.model.hidden(ids[0], ids[1], tap=tap)
    found: dict[str, Floats] = {}
    for_each_map(task.model, read, lambda _, name, weights, norms: found.update({name: norms}))
    for attention in task.model.attentions():
        v, weights = tap[f"{attention.name}.v"][0], tap[f"{attention.name}.weights"][0]
        matrix = attention.output.weight.T.unflatten(0, (v.size(0), v.size(-1)))
        wanted = (weights[..., None] * (v @ matrix)[:, None]).norm(dim=-1)
        np.testing.assert_allclose(found[attention.name], wanted.detach().numpy(), atol=1e-5)


def test_gold_of_the_built_in_corpus_tells_pronouns_apart() -> None:
    examples = builtin_examples(task_of("seq2seq"), ("en", "zh"), 150, 1)
    kinds = {relation.kind for example in examples for relation in example.texts[0].relations}
    assert {"subject", "object", "antecedent", "relative"} <= kinds
    for example in examples:
        rendering = example.texts[0]
        for relation in rendering.relations:
            if relation.kind == "antecedent":
                assert rendering.words[relation.word].lower() not in ("who", "that", "which")
    assert all(example.has_gold_alignment for example in examples)


def test_watching_counts_what_gold_there_is() -> None:
    task = task_of("seq2seq")
    encoded_sample = encode_examples(task, builtin_examples(task, ("en", "zh"), 20, 1))
    head_counts = collect_counts(task.model, encoded_sample.examples)
    assert "align norms written" in head_counts.names["decoder.cross"]
    assert "subject>" in head_counts.names["encoder.self"]
    assert head_counts.n_texts + encoded_sample.n_skipped == 20
    assert head_counts.n_texts > 5


def test_texts_that_nothing_can_be_watched_on() -> None:
    task = task_of("seq2seq")
    with pytest.raises(
        LensError, match="nothing to watch heads on: every text is empty, or longer than the 48 positions"
    ):
        encode_examples(
            task, [Example((plain_text("the cat " * 60), plain_text("a"))), Example((plain_text(" "), plain_text("a")))]
        )
    kept = encode_examples(
        task,
        [Example((plain_text("the cat " * 60), plain_text("a"))), Example((plain_text("the cat"), plain_text("a")))],
    )
    assert (len(kept.examples), kept.n_skipped) == (1, 1)


def test_alignment_is_told_as_an_error() -> None:
    found = Statistic(0.75, 0.5, 0.875, 10, 0.25, "diagonal", 0.125)
    assert as_displayed("align norms written", found) == (
        "AER ",
        Statistic(0.25, 0.125, 0.5, 10, 0.75, "diagonal", 0.875),
    )
    assert as_displayed("confidence", found) == ("", found)
