"""The survey of all heads: the same numbers as the commands, examples of all strengths, and what it needs."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from manyheads.bundle import Bundle
from manyheads.decode import DecodeSettings
from manyheads.errors import LensError
from manyheads.lens import Head, heads_of, trace_input
from manyheads.lens.ablated_probability import answered_texts, lost_probabilities
from manyheads.lens.importance import ablate, gradient_importance, rank_agreement
from manyheads.lens.roles.head_examples import STRATA, HeadExample, measure_strengths, stratified_examples
from manyheads.lens.roles.head_survey import head_effect, survey_heads
from manyheads.lens.roles.role_assignment import make_report
from manyheads.lens.roles.role_names import statistic_name
from manyheads.lens.roles.similarity import compare_heads
from manyheads.lens.scored_rows import open_sample, valid_rows
from manyheads.lens.traces.encoded_examples import encode_examples
from manyheads.lens.traces.examples import sample_examples, with_targets
from manyheads.run import Recipe
from manyheads.settings import to_table
from manyheads.tasks import TASKS
from manyheads.tasks.lens_examples import Example, plain_text

from lens.makers import SHORT, task_of
from tasks.small import make_task

N_TEXTS = 24
MISSING = {"train": ["gone.tsv"], "valid": ["gone.tsv"]}


@cache
def bundle_of(kind: str) -> Bundle:
    """Return an untrained bundle of a task on the built-in corpus."""
    task_type = TASKS[kind]
    settings = task_type.settings_type()
    rows = list(task_type.builtin(settings, ["en"], "train", 40, 1))
    shape = {"shape": task_type.shape, "n_decoder_layers": 1} if kind == "language" else {}
    with torch.random.fork_rng(devices=[]):
        task = make_task(task_type, settings, rows, **shape)
    recipe = Recipe.from_table({"data": {"builtin": "en", "builtin_rows": 1000}, "task": {"kind": kind}})
    return Bundle(task, DecodeSettings(method="greedy", max_new_tokens=3), to_table(recipe))


def test_survey_equals_what_the_commands_compute(untrained: Bundle) -> None:
    shares: list[float] = []
    survey = survey_heads(untrained, N_TEXTS, progress=shares.append)
    sample = encode_examples(untrained.task, with_targets(untrained, sample_examples(untrained, N_TEXTS)))
    report = make_report(untrained.task.model, sample)
    assert tuple(head.card for head in survey.heads) == report.cards
    importances = [head.importance for head in survey.heads]
    with open_sample(untrained.task, valid_rows(untrained, N_TEXTS), untrained.decode) as rows:
        assert [one.gradient for one in importances] == gradient_importance(untrained.task, rows)
    lost = lost_probabilities(untrained.task, answered_texts(untrained.task, valid_rows(untrained, N_TEXTS)))
    assert {way: [one.lost[way] for one in importances] for way in lost} == lost
    by_gradient, by_ablation = ([head.values[name] for head in survey.heads] for name in ("gradient", "importance"))
    assert survey.agreement == rank_agreement(by_gradient, by_ablation)
    assert survey.to_json()["agreement"]["n_heads"] == len(survey.heads)
    assert (survey.state, survey.n_texts, survey.message) == ("ready", N_TEXTS, None)
    for similarity in compare_heads(untrained.task.model, sample.examples):
        first = next(head for head in survey.heads if head.card.head == similarity.heads[0])
        column = int(np.argsort(similarity.distances[0])[1])
        assert first.nearest[0] == (similarity.heads[column], float(similarity.distances[0, column]))
    assert shares == sorted(shares) and shares[-1] == 1.0 and len(shares) > N_TEXTS


@pytest.mark.parametrize("kind", ["classify", "tag", "language", "masked"])
def test_survey_of_every_task_is_json(kind: str) -> None:
    bundle = bundle_of(kind)
    survey = survey_heads(bundle, N_TEXTS)
    table = json.loads(json.dumps(survey.to_json(), allow_nan=False))
    assert [head["head"] for head in table["heads"]] == [str(head) for head in heads_of(bundle.task.model)]
    measures = {measure["id"] for measure in table["measures"]}
    assert {"importance", "importance_mean", "importance_resample", "gradient"} <= measures
    assert {"entropy", "distance", "confidence", "strength", "role_score", "near"} <= measures
    for head in table["heads"]:
        assert set(head["values"]) <= measures
        assert head["color"].startswith("#") and set(head["names"]) == {"en", "zh"}
        assert head["evidence"] and all(one["n"] >= 20 for one in head["evidence"])
        assert {"id", "names", "value", "low", "high", "n", "baseline", "baseline_by", "control"} == set(
            head["evidence"][0]
        )
        assert head["importance"]["low"] <= head["importance"]["value"] <= head["importance"]["high"]
    examples = json.loads(json.dumps(survey.examples_json(table["heads"][0]["head"])))
    assert {one["stratum"] for one in examples["examples"]} == set(STRATA)
    effect = head_effect(bundle, table["heads"][0]["head"], 10)
    assert (effect.state, effect.n_rows) == ("ready", 10)
    json.dumps(effect.to_json(), allow_nan=False)


def test_roles_come_first_among_the_evidence(untrained: Bundle) -> None:
    survey = survey_heads(untrained, N_TEXTS)
    for head in survey.heads:
        table = head.to_json()
        decisive = [role["statistic"] for role in table["roles"]]
        assert [one["id"] for one in table["evidence"]][: len(decisive)] == decisive
        assert len(table["evidence"]) >= min(4, len(decisive) + 4)
        assert (head.values["role_score"] > 0) == bool(decisive) or head.values["role_score"] == 0
        for one in table["evidence"]:
            statistic = head.card.statistics[one["id"]]
            is_error_rate = one["id"].startswith("align")
            assert one["value"] == (1 - statistic.value if is_error_rate else statistic.value)
        if head.card.head.startswith("decoder.0.cross"):
            best = max(value.value for name, value in head.card.statistics.items() if name.startswith("align"))
            assert head.values["aer"] == 1 - best
        assert head.values["entropy"] == pytest.approx(head.card.statistics["entropy"].value / np.log(2))


def test_strength_is_the_share_of_the_output_norm(untrained: Bundle) -> None:
    task = untrained.task
    examples = with_targets(untrained, sample_examples(untrained, 5))
    encoded = encode_examples(task, examples).examples
    strengths = measure_strengths(task.model, encoded)
    for number, example in enumerate(examples):
        recorded = trace_input(task.model, task.model_input(example.texts[0].text, example.texts[1].text))
        for name, traced in recorded.attentions.items():
            means = [float(traced.head_output(head).norm(dim=-1).mean()) for head in range(traced.n_heads)]
            found = [strengths.strengths[Head(name, head)][number] for head in range(traced.n_heads)]
            np.testing.assert_allclose(found, np.array(means) / sum(means), rtol=1e-4)
            query, key = strengths.links[Head(name, 1)][number].tolist()
            moved = traced.norms(1).clone()
            if not name.endswith("cross"):
                special = [token.text in ("<s>", "</s>") for token in traced.queries]
                moved[special] = -1.0
            assert float(moved[query, key]) == pytest.approx(float(moved.max()), rel=1e-4)
            assert strengths.weights[Head(name, 1)][number] == pytest.approx(
                float(traced.weights[1, query, key]), abs=1e-5
            )


def test_examples_are_of_all_strengths(untrained: Bundle) -> None:
    task = untrained.task
    encoded = encode_examples(task, with_targets(untrained, sample_examples(untrained, N_TEXTS))).examples
    strengths = measure_strengths(task.model, encoded)
    head = Head("decoder.0.cross", 2)
    shown = stratified_examples(head, strengths, encoded, task.tokenizer)
    assert [one.stratum for one in shown] == [stratum for stratum in STRATA for _ in range(2)]
    values = [one.strength for one in shown]
    assert values == sorted(values, reverse=True)
    assert (values[0], values[-1]) == (strengths.strengths[head].max(), strengths.strengths[head].min())
    assert len({(one.text, one.answer) for one in shown}) == len(shown)
    assert all(one.query and one.key and one.answer for one in shown)
    few = stratified_examples(head, measure_strengths(task.model, encoded[:3]), encoded[:3], task.tokenizer)
    assert len(few) == 3
    twice = [encoded[0], encoded[0], encoded[1]]
    assert len(stratified_examples(head, measure_strengths(task.model, twice), twice, task.tokenizer)) == 2


@pytest.mark.parametrize("attention", ["encoder.0.self", "decoder.0.self", "decoder.0.cross"])
def test_examples_have_the_places_of_their_tokens(untrained: Bundle, attention: str) -> None:
    task, head = untrained.task, Head(attention, 0)
    source, target = "the cat sees the cat", "猫看见那只猫"
    encoded = encode_examples(task, [Example((plain_text(source), plain_text(target)))]).examples
    strengths = measure_strengths(task.model, encoded)
    n_source, n_target = (len(side.ids) for side in encoded[0].sides)
    query_text, n_queries = (source, n_source) if attention == "encoder.0.self" else (target, n_target)
    key_text, n_keys = (target, n_target) if attention == "decoder.0.self" else (source, n_source)

    def example(query: int, key: int) -> HeadExample:
        linked = replace(strengths, links={head: np.array([[query, key]])})
        return stratified_examples(head, linked, encoded, task.tokenizer)[0]

    queries = [(one.query, one.query_span) for one in (example(query, 0) for query in range(n_queries))]
    keys = [(one.key, one.key_span) for one in (example(0, key) for key in range(n_keys))]
    for text, tokens in ((query_text, queries), (key_text, keys)):
        places = [(name, span) for name, span in tokens if span is not None]
        assert {name for name, span in tokens if span is None} <= {"BOS", "EOS", "␣"}
        assert all(text[slice(*span)] == name.replace("␣", " ") for name, span in places if "<0x" not in name)
        spans = list(dict.fromkeys(span for _, span in places))
        assert spans == sorted(spans)
        assert "".join(text[start:end] for start, end in spans).replace(" ", "") == text.replace(" ", "")


def unreadable(bundle: Bundle) -> Bundle:
    return replace(bundle, recipe=to_table(Recipe.from_table({"data": MISSING})))


def test_validation_data_that_cannot_be_read(untrained: Bundle, tmp_path: Path) -> None:
    bundle = unreadable(untrained)
    survey = survey_heads(bundle, N_TEXTS)
    assert (survey.state, survey.heads) == ("failed", ())
    assert survey.to_json()["message"] == {
        "en": "The validation data of this bundle cannot be read. Give rows like those: manyheads lens BUNDLE --valid "
        "FILE.",
        "zh": "无法读取这个模型包的验证数据。请给出同样格式的数据：manyheads lens BUNDLE --valid FILE。",
    }
    effect = head_effect(bundle, "encoder.0.self/0")
    assert (effect.state, effect.message) == ("failed", survey.message)
    rows = [example.texts for example in sample_examples(untrained, N_TEXTS)]
    file = tmp_path / "rows.tsv"
    file.write_text("".join(f"{source.text}\t{target.text}\n" for source, target in rows), encoding="utf-8")
    given = survey_heads(bundle, N_TEXTS, files=[file])
    assert (given.state, given.message, given.n_texts) == ("ready", None, N_TEXTS)
    assert given.heads[0].importance is not None
    assert head_effect(bundle, "encoder.0.self/0", 10, files=[file]).state == "ready"


def test_given_examples_are_enough_for_all_but_importance(untrained: Bundle) -> None:
    bundle = unreadable(untrained)
    survey = survey_heads(bundle, examples=sample_examples(untrained, N_TEXTS))
    assert survey.state == "ready"
    assert survey.message is not None and str(survey.message).startswith("The validation data of this bundle cannot be")
    assert all(head.importance is None and "importance" not in head.values for head in survey.heads)
    table = survey.to_json()
    assert "importance" not in {measure["id"] for measure in table["measures"]}
    assert table["heads"][0]["importance"] is None


def test_texts_that_are_too_long(untrained: Bundle) -> None:
    survey = survey_heads(untrained, examples=[Example((plain_text("cat " * 99), plain_text("猫")))])
    assert survey.message is not None
    assert str(survey.message).startswith(
        "There is no text to observe heads on: every text is empty, or longer than the"
    )


def test_survey_can_be_stopped(untrained: Bundle) -> None:
    shares: list[float] = []
    survey = survey_heads(untrained, N_TEXTS, progress=shares.append, should_stop=lambda: len(shares) > 5)
    assert (survey.state, len(shares)) == ("failed", 6)
    assert survey.message is not None and str(survey.message) == "The computation was stopped."
    assert not untrained.task.model.is_gated and not untrained.task.module.training


def test_effect_is_that_of_heads_importance(untrained: Bundle) -> None:
    effect = head_effect(untrained, Head("decoder.0.cross", 1), 12)
    with open_sample(untrained.task, valid_rows(untrained, 12), untrained.decode) as sample:
        (ablation,) = ablate(untrained.task, sample, [["decoder.0.cross/1"]])
    change = ablation.change
    assert (effect.metric, effect.baseline, effect.change) == (change.name, change.before, change.difference)
    assert (effect.low, effect.high, effect.n_rows) == (change.low, change.high, 12)


def test_unknown_heads_are_refused(untrained: Bundle) -> None:
    with pytest.raises(
        LensError, match=r"^There is no head decoder\.0\.cross/9: decoder\.0\.cross has heads 0 to 3\.$"
    ):
        head_effect(untrained, "decoder.0.cross/9")
    survey = survey_heads(untrained, 4)
    with pytest.raises(LensError, match=r"^There is no head encoder\.5\.self/0 in this survey of 12 heads\.$"):
        survey.examples_json("encoder.5.self/0")


@pytest.mark.parametrize("name", ["offset-2", "align norms read", "subject>", "bos", "nsubj<", "aer"])
def test_statistics_have_names_in_both_languages(name: str) -> None:
    names = statistic_name(name).by_language()
    assert names["en"].isascii() or "−" in names["en"] or "→" in names["en"]
    assert any("\u4e00" <= character <= "\u9fff" for character in names["zh"])


def test_a_bundle_without_data_in_its_recipe_has_no_survey() -> None:
    bundle = Bundle(task=task_of("classify"), decode=SHORT, recipe={})
    survey = survey_heads(bundle)
    assert survey.state == "failed" and survey.message is not None
    assert head_effect(bundle, "encoder.0.self/0").state == "failed"
