"""The report of a run: its content, and that no log can break it or stop the training."""

import json
import math
import re
from collections.abc import Callable, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from manyheads.errors import RecipeError
from manyheads.metrics import Card, GenerationSample, card_record, label_card, language_card, span_card
from manyheads.report import Reporter, follow, write_report
from manyheads.report.curves import bucket_starts, downsample
from manyheads.report.history import Steps, read_number
from manyheads.report.page import compare_texts, format_duration
from manyheads.run import Finished, Recipe, Validated, delete_run, run
from manyheads.text.reading.tag_schemes import Span

Table = Callable[..., dict[str, object]]

RECIPE = '[task]\nsource_language = "en"\ntarget_language = "de"\n[train]\nsteps = 10\n'
ATTACK = "</script><script>alert('\"')</script><img src=x onerror=alert(1)>"
SCORE = {"name": "BLEU", "value": 41.23, "low": 39.96, "high": 42.5, "signature": "nrefs:1|tok:13a"}
VOID = {"meta", "line", "rect", "circle"}
PREPARED = {
    "event": "Prepared",
    "time": 0.0,
    "n_rows": 900,
    "dropped": {"empty": 20, "too long": 80},
    "vocab_size": 6000,
    "n_parameters": 2_087_424,
    "device": "cpu",
}


def step(number: int, **changes: object) -> dict[str, object]:
    made = {"event": "Step", "time": 100.0 + 6 * number, "step": number, "epoch": 0, "loss": 9.0 - number / 10}
    return made | {"learning_rate": 1e-3, "gradient_norm": 1.5, "n_tokens": 3000, "seconds": 6.0} | changes


def validated(number: int, score: float, *samples: tuple[str, str, str]) -> dict[str, object]:
    return {"event": "Validated", "step": number, "metric": "BLEU", "score": score, "best": score, "samples": samples}


def page_of(folder: Path, *entries: Mapping[str, object], tail: str = "", recipe: str = RECIPE) -> str:
    folder.mkdir(exist_ok=True)
    (folder / "recipe.toml").write_text(recipe, "utf-8")
    lines = "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries)
    (folder / "log.jsonl").write_text(lines + tail, "utf-8")
    return write_report(folder).read_text("utf-8")


def drawn(page: str) -> dict[str, Any]:
    """Return the data that the script of the page draws."""
    (payload,) = re.findall(r'<script type="application/json" id="figures">(.*?)</script>', page, re.DOTALL)
    return json.loads(payload)


def test_titles_say_what_the_loss_averages_and_the_summary_the_threads(tmp_path: Path) -> None:
    terms = {"label smoothing": 0.1}
    page = page_of(tmp_path, PREPARED | {"loss_unit": "texts", "loss_terms": terms, "n_threads": 2}, step(1))
    for text in (
        "Training loss, nats per text, with label smoothing 0.1",
        "训练损失，每个文本的奈特数，含标签平滑 0.1",
        "Texts per second",
        "2 threads",
    ):
        assert text in page


class Balance(HTMLParser):
    """Fails at a tag that does not close the innermost open one; collects the text and the tags."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.words: list[str] = []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self.open):
            self.words.append(data)


def words(page: str) -> str:
    return " ".join(" ".join(Balance(page).words).split())


def test_run_in_progress(tmp_path: Path) -> None:
    samples = [("a cat", "ein Hund", "eine Katze"), ("a cat", "eine Katze", "eine Katze")]
    entries = [PREPARED, *map(step, range(1, 5)), validated(2, 11.0, samples[0]), validated(4, 33.3, samples[1])]
    page = page_of(tmp_path / "my-run", *entries)
    shown = words(page)
    assert "my-run" in shown
    assert "2.1 M parameters" in shown
    assert "Training, step 4 of 10, 36 s left" in shown
    assert "正在训练，第 4 / 10 步，剩余 36 秒" in shown
    assert "best so far: step 4" in shown
    assert "33.3 BLEU" in shown
    assert 'data-reload="20"' in page
    assert 'http-equiv="refresh"' in page
    assert "read 读入 1,000 100.0 % empty 空行 −20 2.0 % too long 过长 −80 8.0 % kept 保留 900 90.0 %" in shown
    assert "a cat 2 ein Hund 4 eine Katze expected 参考答案 eine Katze" in shown
    assert drawn(page)["step"] == [1, 2, 3, 4]
    assert drawn(page)["minute"] == [0.1, 0.2, 0.3, 0.4]
    assert drawn(page)["curves"]["speed"][0] == [500] * 4
    assert [row[2] for row in drawn(page)["validations"]] == [11.0, 33.3]


def test_finished_run(tmp_path: Path) -> None:
    sections = [
        {"section": "Figures", "figures": [{"name": ["cut off", "被截断"], "value": 7, "total": 100}]},
        {"section": "Note", "text": ["Mind the gap.", "注意。"]},
        {
            "section": "Examples",
            "title": ["worst", "最差的"],
            "rows": [{"number": 3, "text": "a", "answer": "b", "expected": "c"}],
        },
    ]
    cards = {"test": {"scores": [SCORE], "sections": sections}}
    choice = {"setting": "length_penalty", "value": 1.0, "metric": "BLEU", "scores": {"1": 41.23}, "n_rows": 400}
    chosen = {"event": "DecodingChosen", "choice": choice}
    page = page_of(tmp_path, PREPARED, step(1), chosen, {"event": "Finished", "cards": cards})
    shown = words(page)
    assert "Finished after step 1" in shown
    assert "length penalty 1, chosen by BLEU on 400 validation rows" in shown
    assert "41.2 BLEU [40.0, 42.5]" in shown
    assert "nrefs:1|tok:13a" in shown
    assert "cut off 被截断 7 (7.0 %)" in shown
    assert "Mind the gap. 注意。" in shown
    assert "Examples: worst (1) 示例：最差的（1） a b expected 参考答案 c" in shown
    assert '<li value="3">' in page
    assert "source_language" in shown
    assert "data-reload=" not in page
    assert 'http-equiv="refresh"' not in page


def finished_with(card: Card) -> dict[str, object]:
    return {"event": "Finished", "cards": {"test": json.loads(json.dumps(card_record(card)))}}


def test_classifier(tmp_path: Path) -> None:
    gold, predicted = [("good",), ("good",), ("bad",)], [("good",), ("bad",), ("bad",)]
    probabilities = np.array([[0.1, 0.9], [0.8, 0.2], [0.7, 0.3]])
    card = label_card(["fine", "so so", ATTACK], gold, predicted, probabilities, ["bad", "good"], n_resamples=20)
    validation = validated(1, 0, ("so so", "bad", "good")) | {"metric": "accuracy", "score": 66.667}
    prepared = PREPARED | {"n_rows": 900, "noun": "texts"}
    page = page_of(tmp_path, prepared, step(1), validation, finished_with(card), recipe='[task]\nkind = "classify"\n')
    shown = words(page)
    assert "66.7 accuracy 准确率 [" in shown
    assert "900 texts 900 条文本" in shown
    assert "expected 参考答案 good" in shown
    assert "Examples: most confident mistakes (1)" in shown
    assert "label 标签 precision 精确率 recall 召回率 F1 support 样本数" in shown
    assert "bad 50.0 100.0 66.7 1 good 100.0 50.0 66.7 2" in shown
    assert "good → bad: 1 (50.0 %)" in shown
    assert Balance(page).tags.count("svg") >= 2
    for strange in ("translation", "译文", "BLEU", "pairs", "句对"):
        assert strange not in shown


def test_tagger(tmp_path: Path) -> None:
    card = span_card(["a b c"], [[Span(0, 2, "PER")]], [[Span(1, 2, "LOC")]], ["x"], ["y"], n_resamples=5)
    shown = words(page_of(tmp_path, PREPARED, finished_with(card), recipe='[task]\nkind = "tag"\n'))
    assert "intent accuracy 意图准确率" in shown
    assert "expected 参考答案 x · a b (PER)" in shown


def test_headlines_of_a_set_that_chose_something_are_marked(tmp_path: Path) -> None:
    for used_for, is_marked in (([], False), (["stopping", "calibration"], True)):
        cards = {"valid": {"scores": [SCORE | {"used_for": used_for}]}}
        page = page_of(tmp_path, PREPARED, step(1), {"event": "Finished", "cards": cards})
        headlines = page.split('class="headlines"')[1].split("<section")[0]
        assert ("optimistic, see below" in headlines) == is_marked


def test_scores_of_which_lower_is_better_are_not_negated(tmp_path: Path) -> None:
    validations = [
        validated(number, 0) | {"metric": "nats per character", "score": score}
        for number, score in ((1, -2.5), (2, -1.2345), (3, -1.5))
    ]
    steps = [step(number) for number in (1, 2, 3)]
    page = page_of(tmp_path, PREPARED, *(entry for pair in zip(steps, validations, strict=True) for entry in pair))
    assert "best so far: step 2" in words(page)
    assert "1.234 nats per character" in words(page) or "1.235 nats per character" in words(page)
    assert [row[2] for row in drawn(page)["validations"]] == pytest.approx([2.5, 1.2345, 1.5], abs=1e-3)
    assert drawn(page)["best"] == 1
    card = language_card([300.0], [100], [400], [80], [420], samples=[GenerationSample("once", "upon a time")])
    page = page_of(tmp_path, PREPARED, step(1), finished_with(card))
    assert "0.750 nats per character 每字符奈特 [0.3" in words(page)
    assert "n = 1: so few that the interval says little. n = 1：样本太少，区间参考价值有限。" in words(page)
    assert "42.52 perplexity per word" in words(page)
    assert "once upon a time" in words(page)


@pytest.mark.parametrize(
    "damaged",
    [
        7,
        {"section": "Weather"},
        {"section": "LabelTable", "rows": 7},
        {"section": "LabelTable", "rows": [{"label": "a", "precision": 1, "recall": 1, "f1": "x", "support": 1}]},
        {"section": "LabelTable", "rows": []},
        {"section": "Confusion", "labels": ["a"], "counts": [[1, 2]]},
        {"section": "Confusion", "labels": ["a"], "counts": [["x"]]},
        {"section": "Confusion", "labels": [], "counts": []},
        {"section": "Examples", "title": ["t", "t"], "rows": [{"number": 1, "text": 3}]},
        {"section": "Examples", "title": "t", "rows": []},
        {"section": "Generations", "samples": [{"prompt": "p"}]},
    ],
)
def test_damaged_sections_are_left_out(tmp_path: Path, damaged: object) -> None:
    cards = {"test": {"scores": [SCORE], "sections": [damaged]}}
    page = page_of(tmp_path, PREPARED, {"event": "Finished", "cards": cards})
    assert "41.2 BLEU" in words(page)
    assert "<summary>" not in page.split('id="scorecard"')[1].split("</section>")[0]


def test_interrupted_run_is_shown_as_such_until_it_resumes(tmp_path: Path) -> None:
    interrupted = {"event": "Interrupted", "step": 2}
    page = page_of(tmp_path, PREPARED, step(1), step(2), interrupted)
    assert "Interrupted at step 2 of 10" in words(page)
    assert "data-reload=" not in page
    page = page_of(tmp_path, PREPARED, step(1), step(2), interrupted, PREPARED, {"event": "Resumed", "step": 2})
    assert "Training, step 2 of 10" in words(page)


def test_user_text_cannot_become_markup(tmp_path: Path) -> None:
    sample = (ATTACK, ATTACK + " more", ATTACK)
    score = SCORE | {"name": ATTACK, "signature": ATTACK}
    row = {"number": 1, "text": ATTACK, "answer": ATTACK + " more", "expected": ATTACK}
    label = {"label": ATTACK, "precision": 1.0, "recall": 1.0, "f1": 1.0, "support": 1}
    sections = [
        {"section": "Figures", "figures": [{"name": [ATTACK, ATTACK], "value": 1}]},
        {"section": "Note", "text": [ATTACK, ATTACK]},
        {"section": "LabelTable", "rows": [label]},
        {"section": "Confusion", "labels": [ATTACK], "counts": [[1]]},
        {"section": "Examples", "title": [ATTACK, ATTACK], "rows": [row]},
        {"section": "Generations", "samples": [{"prompt": ATTACK, "text": ATTACK}]},
    ]
    entries = [
        PREPARED | {"device": ATTACK, "dropped": {ATTACK: 5}},
        step(1),
        validated(1, 5.0, sample) | {"metric": ATTACK},
        {"event": "Finished", "cards": {ATTACK: {"scores": [score], "sections": sections}}},
    ]
    folder = tmp_path / "<b>&run"
    folder.mkdir()
    page = page_of(folder, *entries)
    (folder / "recipe.toml").write_text(f'name = "{ATTACK}"\n# {ATTACK}', "utf-8")
    for shown in (page, write_report(folder).read_text("utf-8")):
        balance = Balance(shown)
        assert balance.tags.count("script") == 2
        assert not {"img", "b>"} & set(balance.tags)
        assert ATTACK in "".join(balance.words)
    assert drawn(page)["metric"] == ATTACK
    stage = page_of(tmp_path / "other", {"event": "Stage", "description": ATTACK})
    assert Balance(stage).tags.count("script") == 2


def test_right_to_left_text_has_its_direction(tmp_path: Path) -> None:
    page = page_of(tmp_path, PREPARED, step(1), validated(1, 5.0, ("قطة", "كلب", "قطة")))
    assert '<p class="source" dir="auto">قطة</p>' in page
    assert re.search('<p class="translation" dir="auto">.*ك', page)


def test_page_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    page = page_of(
        tmp_path, PREPARED, step(1), validated(1, 5.0), {"event": "Finished", "cards": {"test": {"scores": [SCORE]}}}
    )
    assert set(re.findall(r"https?://[^\"'\s]*", page)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"\b(src|href)=|@import|url\(", page)
    assert "default-src 'none'" in page


@pytest.mark.parametrize("tail", ['{"event": "Step", "step": 3, "lo', '{"event": "Validated", "step": 2, "bleu": "犬'])
def test_unfinished_line_is_read_later(tmp_path: Path, tail: str) -> None:
    assert drawn(page_of(tmp_path, PREPARED, step(1), step(2), tail=tail))["step"] == [1, 2]


def test_truncated_line_does_not_hide_the_next(tmp_path: Path) -> None:
    tail = '{"event": "Step", "step": 3, "lo' + json.dumps(step(3, loss=4.5)) + "\n\nnot json\n[1]\n"
    assert drawn(page_of(tmp_path, PREPARED, step(1), step(2), tail=tail))["curves"]["loss"][0] == [8.9, 8.8, 4.5]


def test_repeated_steps_replace_earlier_ones(tmp_path: Path) -> None:
    first = [PREPARED, *map(step, range(1, 6)), validated(3, 20.0), validated(5, 30.0)]
    again = [PREPARED, {"event": "Resumed", "step": 3}, step(4, loss=1.0, time=9e6), step(5, loss=0.5, time=9e6 + 6)]
    seen = drawn(page_of(tmp_path, *first, *again))
    assert seen["step"] == [1, 2, 3, 4, 5]
    assert seen["curves"]["loss"][0] == [8.9, 8.8, 8.7, 1, 0.5]
    assert [row[0] for row in seen["validations"]] == [3]
    assert seen["minute"] == [0.1, 0.2, 0.3, 0.4, 0.5]  # the pause does not count


def test_unknown_missing_and_invalid_entries(tmp_path: Path) -> None:
    entries = [
        {"event": "Eclipse", "step": 1},
        {"no": "event"},
        {"event": "Prepared"},
        {"event": "Prepared", "n_rows": "many", "dropped": [1]},
        {"event": "Step"},
        {"event": "Step", "step": 1},
        step(2, loss=math.nan, gradient_norm=math.inf, seconds=0, learning_rate="fast"),
        {"event": "Validated", "step": 2},
        {"event": "Validated", "step": 2, "metric": "chrF", "score": 52.25, "sample": ["only one"]},
        {"event": "Resumed"},
        {"event": "DecodingChosen"},
        {"event": "DecodingChosen", "choice": {"setting": 3}},
        {"event": "Finished", "cards": {"test": 7, "other": {"scores": [{"name": "BLEU"}, 3], "sections": 3}}},
    ]
    for count in range(len(entries) + 1):
        page = page_of(tmp_path, *entries[:count])
        assert Balance(page).open == []
        if count == len(entries):
            assert drawn(page)["curves"]["loss"][0] == [None, None]
            assert drawn(page)["validations"] == [[2, 0, 52.25]]
            assert drawn(page)["metric"] == "chrF"
    (tmp_path / "recipe.toml").write_text("not = = toml", "utf-8")
    assert "not = = toml" in write_report(tmp_path).read_text("utf-8")
    (tmp_path / "recipe.toml").unlink()
    write_report(tmp_path)


def test_folder_without_a_log_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"is not a run folder: it has no log\.jsonl"):
        write_report(tmp_path)


def test_downsampling_keeps_spikes_and_skips_nan() -> None:
    values = np.ones(123_457)
    values[77_777], values[99_999], values[5] = 50.0, -3.0, np.nan
    downsampled = downsample(values.tolist(), bucket_starts(len(values)))
    assert len(downsampled.mean) == 1000
    assert downsampled.high.max() == 50.0
    assert downsampled.low.min() == -3.0
    assert np.isfinite(downsampled.mean).all()
    assert np.isnan(downsample([math.nan, math.inf, 1.0], bucket_starts(3)).mean).tolist() == [True, True, False]
    assert len(bucket_starts(0)) == len(downsample([], bucket_starts(0)).mean) == 0


def test_only_new_lines_of_a_long_log_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page_of(tmp_path, PREPARED, *map(step, range(1, 50_001)), step(50_001, gradient_norm=77.0))
    reporter = Reporter(tmp_path)
    page = reporter.write().read_text("utf-8")
    assert len(drawn(page)["step"]) == 1000
    assert max(drawn(page)["curves"]["norm"][2]) == 77
    assert len(page) < 250_000
    with (tmp_path / "log.jsonl").open("a") as log:
        log.write(json.dumps(step(50_002)) + "\n")
    added: list[float] = []
    add = Steps.add
    monkeypatch.setattr(
        Steps, "add", lambda steps, entry, minutes: (added.append(entry["step"]), add(steps, entry, minutes))
    )
    page = reporter.write().read_text("utf-8")
    assert added == [50_002]
    assert drawn(page)["step"][-1] == 50_002


@pytest.mark.parametrize(
    ("answer", "expected", "parts"),
    [
        ("the red cat sat", "the cat sat down", [("the ", False), ("red", True), (" ", False), ("cat sat", False)]),
        ("两只猫睡觉。", "两只狗睡觉。", [("两只", False), ("猫", True), ("睡觉。", False)]),
        ("GetWeather", "PlayMusic", [("GetWeather", True)]),
        ("", "a", []),
    ],
)
def test_parts_that_the_expected_answer_lacks_are_marked(
    answer: str, expected: str, parts: list[tuple[str, bool]]
) -> None:
    assert compare_texts(answer, expected) == parts


def test_durations() -> None:
    assert [str(format_duration(seconds)) for seconds in (36, 600, 7500, math.nan)] == [
        "36 s",
        "10 min",
        "2 h 05 min",
        "–",
    ]


def test_follow_keeps_the_page_up_to_date(tmp_path: Path, recipe_table: Table) -> None:
    pages = []
    for event in follow(run(Recipe.from_table(recipe_table()), tmp_path), tmp_path):
        if isinstance(event, Validated | Finished):
            pages.append(words((tmp_path / "report.html").read_text("utf-8")))
            assert not isinstance(event, Validated) or len(event.samples) == 4
    assert "Training, step 3 of 6" in pages[0]
    assert "Finished after step 6" in pages[-1]
    assert not list(tmp_path.glob("*.partial"))
    delete_run(tmp_path)
    assert not (tmp_path / "report.html").exists()


def test_failure_to_write_does_not_stop_training(tmp_path: Path, recipe_table: Table) -> None:
    events = follow(run(Recipe.from_table(recipe_table()), tmp_path), tmp_path)
    next(events)
    (tmp_path / "report.html").unlink()
    (tmp_path / "report.html").mkdir()
    assert isinstance(list(events)[-1], Finished)
    assert not list(tmp_path.glob("*.partial"))
    with pytest.raises(OSError, match=r"report\.html"):
        write_report(tmp_path)


def test_numbers_beyond_every_float_are_left_out() -> None:
    assert read_number(2**62) == 2.0**62
    assert math.isnan(read_number(10**400))
    assert math.isnan(read_number(True))


def test_rows_dropped_from_validation_are_reported(tmp_path: Path) -> None:
    dropped = {"noun": "sentence pairs", "n_valid": 77, "valid_dropped": {"in test": 23}}
    shown = words(page_of(tmp_path, PREPARED | dropped, step(1)))
    assert "77 of 100 sentence pairs · 23 kept out: 23 in test" in shown
    assert "77 / 100 句对 · 排除 23：与测试集重复 23" in shown
    for faulty in ({"n_valid": "many"}, {"valid_dropped": {"in test": "many"}}, {"valid_dropped": 3}):
        assert "kept out: 23" not in words(page_of(tmp_path, PREPARED | dropped | faulty, step(1)))
