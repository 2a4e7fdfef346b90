"""Role cards of hand-made attention maps and of untrained models."""

import numpy as np
import pytest
import torch

from manyheads.corpora import Relation
from manyheads.errors import LensError
from manyheads.lens.roles.head_counts import HeadCounts, collect_counts, count_heads, for_each_map, tabulate
from manyheads.lens.roles.measures import offset_maps, uniform_map
from manyheads.lens.roles.role_assignment import UNKNOWN, HeadReport, Statistic, as_displayed, assign_roles, make_report
from manyheads.lens.traces.encoded_examples import EncodedExample, Floats, encode_examples
from manyheads.model import Tap
from manyheads.tasks import Task
from manyheads.tasks.lens_examples import Example, plain_text
from manyheads.text.tokens.tokenizer import BOS

from lens.makers import task_of
from lens.test_measures import positions

SIZE = 12


def builtin_examples(task: Task, count: int) -> list[Example]:
    return task.lens_examples.builtin(task, ("en", "zh"), count, 1)


def texts_of(count: int = 30) -> list[EncodedExample]:
    """Return texts of equal length in which word 2 has its object at different positions."""
    texts = []
    for number in range(count):
        ids = [BOS, *(10 + (number * 7 + position) % 50 for position in range(SIZE - 1))]
        texts.append(
            EncodedExample(Example((plain_text("…"),)), (positions(ids, (Relation("object", 3 + number % 7, 2),)),))
        )
    return texts


def counts_of(maps: list[list[Floats]], texts: list[EncodedExample]) -> HeadCounts:
    """Return the counts of one attention from the maps of each text and head."""
    counts = [count_heads("decoder.self", own, own, text) for own, text in zip(map(np.stack, maps), texts, strict=True)]
    return tabulate({"decoder.0.self": counts}, texts)


def hand_made(text: EncodedExample) -> list[Floats]:
    previous = offset_maps(SIZE, SIZE, [-1], is_causal=True)[0]
    sink = np.zeros((SIZE, SIZE))
    sink[:, 0] = 1.0
    finder = uniform_map(SIZE, SIZE, is_causal=True)[0].copy()
    for relation in text.sides[0].relations:
        finder[relation.word + 1] = 0.0  # BOS comes before the words
        finder[relation.word + 1, relation.head + 1] = 1.0
    return [previous, sink, finder, uniform_map(SIZE, SIZE, is_causal=True)[0]]


def report_of(model: list[list[Floats]], control: list[list[Floats]], texts: list[EncodedExample]) -> HeadReport:
    return assign_roles(counts_of(model, texts), [counts_of(control, texts)], seeds=(1,))


def test_hand_made_heads_get_their_roles() -> None:
    texts = texts_of()
    uniform = [[uniform_map(SIZE, SIZE, is_causal=True)[0]] * 4 for _ in texts]
    report = report_of([hand_made(text) for text in texts], uniform, texts)
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
    assert (statistic.value, statistic.high, statistic.n) == (1.0, 1.0, 30)
    assert statistic.low == pytest.approx(0.025 ** (1 / 30))  # right in 30 of 30 texts: the exact binomial interval
    never = report.cards[3].statistics["object>"]
    assert (never.value, never.low, never.high) == (0.0, 0.0, pytest.approx(1 - 0.025 ** (1 / 30)))
    assert statistic.baseline < 0.3
    assert statistic.baseline_by.startswith("offset")
    assert report.with_role("attention-sink") == [report.cards[1]]


def looking_back_at(words: set[int], text: EncodedExample) -> Floats:
    """The object and these neighbors of it look at the verb, which is word 2; other words look evenly."""
    weights = uniform_map(SIZE, SIZE, is_causal=True)[0].copy()
    (relation,) = text.sides[0].relations
    for word in {relation.word + neighbor for neighbor in words} - {relation.head}:
        if relation.head < word < SIZE - 1:
            weights[word + 1] = 0.0
            weights[word + 1, relation.head + 1] = 1.0
    return weights


def test_what_the_neighbors_of_a_word_do_as_well_is_no_relation() -> None:
    texts = texts_of(60)
    uniform = [[uniform_map(SIZE, SIZE, is_causal=True)[0]] * 3 for _ in texts]
    heads = [[looking_back_at(words, text) for words in ({0}, {0, -1}, {0, 2})] for text in texts]
    report = report_of(heads, uniform, texts)
    assert [card.role for card in report.cards] == ["object>", UNKNOWN, UNKNOWN]
    values = [card.statistics["object>"] for card in report.cards]
    assert [statistic.value for statistic in values] == [1.0] * 3
    assert [statistic.baseline_by for statistic in values[1:]] == ["neighbor-1", "neighbor+2"]
    assert [statistic.baseline for statistic in values[1:]] == [1.0, 1.0]
    assert values[0].baseline < 0.3


def test_a_role_is_confirmed_on_the_other_half_of_the_texts() -> None:
    texts = texts_of(80)
    uniform = uniform_map(SIZE, SIZE, is_causal=True)[0]
    found = [looking_back_at({0}, text) for text in texts]
    halves = [[one if number % 2 == half else uniform for half in (0, 1)] for number, one in enumerate(found)]
    report = report_of(halves, [[uniform, uniform] for _ in texts], texts)
    # On all texts together each of them is right in half of the cases, far more often than any baseline.
    for card in report.cards:
        statistic = card.statistics["object>"]
        assert statistic.low > statistic.baseline + 0.1
        assert card.role == UNKNOWN
    everywhere = report_of([[one] for one in found], [[uniform] for _ in texts], texts)
    assert everywhere.cards[0].role == "object>"


def test_role_that_a_control_meets_is_not_assigned() -> None:
    texts = texts_of()
    maps = [hand_made(text) for text in texts]
    report = report_of(maps, maps, texts)
    assert [card.role for card in report.cards] == [UNKNOWN] * 4
    assert {"previous-token", "attention-sink", "object>"} <= set(report.controls)
    assert report.controls["attention-sink"] == ("seed 1, decoder.0.self/1",)


def test_statistic_with_few_cases_gives_no_role() -> None:
    texts = texts_of(12)  # twelve objects are fewer than the minimum
    uniform = [[uniform_map(SIZE, SIZE, is_causal=True)[0]] * 4 for _ in texts]
    report = report_of([hand_made(text) for text in texts], uniform, texts)
    assert report.cards[2].role == UNKNOWN
    assert report.cards[2].statistics["object>"].value == 1.0
    assert report.cards[1].role == "attention-sink"


def test_wide_interval_around_the_threshold_gives_no_role() -> None:
    texts = texts_of()
    sink = np.zeros((SIZE, SIZE))
    sink[:, 0] = 1.0
    uniform = uniform_map(SIZE, SIZE, is_causal=True)[0]
    # In half of the texts all weight is on BOS: more than half in total, but with a wide interval.
    report = report_of([[sink if number % 2 else uniform] for number in range(30)], [[uniform] for _ in texts], texts)
    statistic = report.cards[0].statistics["bos"]
    assert statistic.value > 0.5 > statistic.low
    assert report.cards[0].role == UNKNOWN


@pytest.mark.parametrize("kind", ["seq2seq", "language", "masked", "tag", "classify"])
def test_untrained_models_have_no_roles(kind: str) -> None:
    task = task_of(kind)
    pair = (plain_text("the cat sat on the mat"), plain_text("the dog ran to the mat"))
    texts = [Example(pair if kind == "seq2seq" else pair[number % 2 :][:1]) for number in range(6)]
    report = make_report(task.model, encode_examples(task, texts), seeds=(1, 2))
    assert len(report.cards) == sum(attention.heads.n_heads for attention in task.model.attentions())
    assert report.seeds == (1, 2)
    assert not any(role.name in ("alignment", "antecedent", "object>") for card in report.cards for role in card.roles)


def test_maps_are_independent_of_padding() -> None:
    task = task_of("seq2seq")
    texts = [
        Example((plain_text("the cat"), plain_text("a"))),
        Example((plain_text("no dog sat on the red mat"), plain_text("the mat ran"))),
    ]
    encoded_examples = encode_examples(task, texts).examples
    together: dict[tuple[int, str], Floats] = {}
    for_each_map(
        task.model, encoded_examples, lambda number, name, weights, norms: together.update({(number, name): weights})
    )
    for number, encoded in enumerate(encoded_examples):
        for_each_map(
            task.model,
            [encoded],
            lambda _, name, weights, norms, number=number: np.testing.assert_allclose(
                together[number, name], weights, atol=1e-6
            ),
        )
    assert all(np.allclose(weights.sum(-1), 1.0) for weights in together.values())
    assert together[0, "decoder.0.cross"].shape[1:] == (
        len(encoded_examples[0].sides[1].ids),
        len(encoded_examples[0].sides[0].ids),
    )


def test_norms_are_those_of_the_contributed_vectors() -> None:
    task = task_of("seq2seq")
    encoded_examples = encode_examples(task, [Example((plain_text("the cat sat"), plain_text("the mat")))]).examples
    tap = Tap()
    ids = [torch.from_numpy(side.ids)[None] for side in encoded_examples[0].sides]
    task.model.hidden(ids[0], ids[1], tap=tap)
    norms_of: dict[str, Floats] = {}
    for_each_map(task.model, encoded_examples, lambda _, name, weights, norms: norms_of.update({name: norms}))
    for attention in task.model.attentions():
        v, weights = tap[f"{attention.name}.v"][0], tap[f"{attention.name}.weights"][0]
        matrix = attention.output.weight.T.unflatten(0, (v.size(0), v.size(-1)))
        expected = (weights[..., None] * (v @ matrix)[:, None]).norm(dim=-1)
        np.testing.assert_allclose(norms_of[attention.name], expected.detach().numpy(), atol=1e-5)


def test_builtin_examples_separate_relative_pronouns() -> None:
    examples = builtin_examples(task_of("seq2seq"), 150)
    kinds = {relation.kind for example in examples for relation in example.texts[0].relations}
    assert {"subject", "object", "antecedent", "relative"} <= kinds
    for example in examples:
        rendering = example.texts[0]
        for relation in rendering.relations:
            if relation.kind == "antecedent":
                assert rendering.words[relation.word].lower() not in ("who", "that", "which")
    assert all(example.has_gold_alignment for example in examples)


def test_counts_include_gold_statistics() -> None:
    task = task_of("seq2seq")
    encoded_sample = encode_examples(task, builtin_examples(task, 20))
    head_counts = collect_counts(task.model, encoded_sample.examples)
    assert "align norms written" in head_counts.names["decoder.cross"]
    assert "subject>" in head_counts.names["encoder.self"]
    assert head_counts.n_texts + encoded_sample.n_skipped == 20
    assert head_counts.n_texts > 5


def test_unusable_texts_are_refused_or_skipped() -> None:
    task = task_of("seq2seq")
    with pytest.raises(
        LensError, match="no text to observe heads on: every text is empty, or longer than the 48 positions"
    ):
        encode_examples(
            task, [Example((plain_text("the cat " * 60), plain_text("a"))), Example((plain_text(" "), plain_text("a")))]
        )
    kept = encode_examples(
        task,
        [Example((plain_text("the cat " * 60), plain_text("a"))), Example((plain_text("the cat"), plain_text("a")))],
    )
    assert (len(kept.examples), kept.n_skipped) == (1, 1)


def test_alignment_is_displayed_as_error_rate() -> None:
    statistic = Statistic(0.75, 0.5, 0.875, 10, 0.25, "diagonal", 0.125)
    assert as_displayed("align norms written", statistic) == (
        "AER ",
        Statistic(0.25, 0.125, 0.5, 10, 0.75, "diagonal", 0.875),
    )
    assert as_displayed("confidence", statistic) == ("", statistic)
