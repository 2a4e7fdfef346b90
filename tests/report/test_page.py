"""The page of a run: what it shows, and that nothing in a log can break it or the training."""

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, is_dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from manyheads.errors import RecipeError
from manyheads.metrics import GenerationSample, label_card, language_card, span_card
from manyheads.report import Reporter, follow, write_report
from manyheads.report.curve_thinning import bucket_starts, downsample
from manyheads.report.history import Steps
from manyheads.report.markup import compared
from manyheads.run import Finished, Recipe, Validated, delete_run, run
from manyheads.text.tag_schemes import Span

Table = Callable[..., dict[str, object]]

RECIPE = '[task]\nsource_language = "en"\ntarget_language = "de"\n[train]\nsteps = 10\n'
ATTACK = "</script><script>alert('\"')</script><img src=x onerror=alert(1)>"
SCORE = {"name": "BLEU", "value": 41.23, "low": 39.96, "high": 42.5, "signature": "nrefs:1|tok:13a"}
TABLE = {"source": "a", "translation": "b", "reference": "c"}
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


def validated(number: int, bleu: float, *samples: tuple[str, str, str]) -> dict[str, object]:
    return {"event": "Validated", "step": number, "bleu": bleu, "best": bleu, "samples": samples}


def page_of(folder: Path, *entries: Mapping[str, object], tail: str = "", recipe: str = RECIPE) -> str:
    folder.mkdir(exist_ok=True)
    (folder / "recipe.toml").write_text(recipe, "utf-8")
    lines = "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries)
    (folder / "log.jsonl").write_text(lines + tail, "utf-8")
    return write_report(folder).read_text("utf-8")


def drawn(page: str) -> dict[str, Any]:
    """What the script of the page draws."""
    (found,) = re.findall(r'<script type="application/json" id="figures">(.*?)</script>', page, re.DOTALL)
    return json.loads(found)


class Balance(HTMLParser):
    """Fails at a tag that closes another than the innermost open one; gathers the text and the tags."""

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


def test_a_run_under_way(tmp_path: Path) -> None:
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
    assert "a cat 2 ein Hund 4 eine Katze reference 参考译文 eine Katze" in shown
    assert drawn(page)["step"] == [1, 2, 3, 4]
    assert drawn(page)["minute"] == [0.1, 0.2, 0.3, 0.4]
    assert drawn(page)["curves"]["speed"][0] == [500] * 4
    assert [row[2] for row in drawn(page)["validations"]] == [11.0, 33.3]


@pytest.mark.parametrize(
    "finished",
    [
        {"scores": {"test": [SCORE]}, "samples": [["a", "b", "c"]], "n_cut_off": 7, "n_too_long": 0},
        {"cards": {"test": {"scores": [SCORE], "n_cut_off": 7, "worst": [["a", "b", "c"]], "other": [1, None]}}},
        {"cards": {"test": {"scores": [SCORE], "facts": {"n_cut_off": 7}, "worst": [TABLE]}}},
    ],
)
def test_a_finished_run_with_the_scorecards_of_any_version(tmp_path: Path, finished: dict[str, object]) -> None:
    page = page_of(tmp_path, PREPARED, step(1), {"event": "Finished", **finished})
    shown = words(page)
    assert "Finished after step 1" in shown
    assert "41.2 BLEU [40.0, 42.5]" in shown
    assert "nrefs:1|tok:13a" in shown
    assert "cut off at the maximum length 到最大长度被截断 7" in shown
    assert re.search(r"\(1\).*a b reference 参考译文 c", shown)
    assert "source_language" in shown
    assert "data-reload=" not in page
    assert 'http-equiv="refresh"' not in page


def finished_with(card: object) -> dict[str, object]:
    assert is_dataclass(card)
    assert not isinstance(card, type)
    return {"event": "Finished", "cards": {"test": json.loads(json.dumps(asdict(card)))}}


def test_a_classifier_is_told_in_its_own_words(tmp_path: Path) -> None:
    gold, predicted = [("good",), ("good",), ("bad",)], [("good",), ("bad",), ("bad",)]
    probabilities = np.array([[0.1, 0.9], [0.8, 0.2], [0.7, 0.3]])
    card = label_card(["fine", "so so", ATTACK], gold, predicted, probabilities, ["bad", "good"], n_resamples=20)
    look = validated(1, 0, ("so so", "bad", "good")) | {"metric": "accuracy", "score": 66.667}
    prepared = PREPARED | {"n_rows": 900, "noun": "texts"}
    page = page_of(tmp_path, prepared, step(1), look, finished_with(card), recipe='[task]\nkind = "classify"\n')
    shown = words(page)
    assert "66.7 accuracy 准确率 [" in shown
    assert "900 texts 900 条文本" in shown
    assert "expected 正确答案 good" in shown
    assert "Answers: worst (1)" in shown
    assert "label 标签 precision 精确率 recall 召回率 F1 F1 support 样本数" in shown
    assert "bad 50.0 100.0 66.7 1 good 100.0 50.0 66.7 2" in shown
    assert "good → bad: 1 (50.0 %)" in shown
    assert Balance(page).tags.count("svg") >= 2
    for strange in ("reference", "译文", "BLEU", "pairs", "句对"):
        assert strange not in shown


def test_a_tagger_is_told_by_its_spans(tmp_path: Path) -> None:
    card = span_card(["a b c"], [[Span(0, 2, "PER")]], [[Span(1, 2, "LOC")]], ["x"], ["y"], n_resamples=5)
    shown = words(page_of(tmp_path, PREPARED, finished_with(card), recipe='[task]\nkind = "tag"\n'))
    assert "intent accuracy 意图准确率" in shown
    assert "expected 正确答案 x · a b (PER)" in shown


def test_figures_of_which_lower_is_better_are_shown_as_they_are(tmp_path: Path) -> None:
    looks = [
        validated(number, 0) | {"metric": "nats per character", "score": score}
        for number, score in ((1, -2.5), (2, -1.2345), (3, -1.5))
    ]
    steps = [step(number) for number in (1, 2, 3)]
    page = page_of(tmp_path, PREPARED, *(entry for pair in zip(steps, looks, strict=True) for entry in pair))
    assert "best so far: step 2" in words(page)
    assert "1.234 nats per character" in words(page) or "1.235 nats per character" in words(page)
    assert [row[2] for row in drawn(page)["validations"]] == pytest.approx([2.5, 1.2345, 1.5], abs=1e-3)
    assert drawn(page)["best"] == 1
    card = language_card([300.0], [100], [400], [80], [420], samples=[GenerationSample("once", "upon a time")])
    page = page_of(tmp_path, PREPARED, step(1), finished_with(card))
    assert "0.750 nats per character 每字符奈特 [0.750, 0.750]" in words(page)
    assert "42.52 perplexity per word" in words(page)
    assert "once upon a time" in words(page)


@pytest.mark.parametrize(
    "odd",
    [
        {"rows": 7, "confusion": 7},
        {"rows": [1, {}, {"label": "a"}], "confusion": {"labels": ["a"], "counts": [[1, 2]]}},
        {"rows": [{"label": "a", "f1": "x"}], "confusion": {"labels": ["a"], "counts": [["x"]]}},
        {"rows": [], "confusion": {"labels": [], "counts": []}},
        {"worst": [{"predicted": 5, "gold": None}, {"predicted": ["a"], "gold": ["b"], "text": 3}]},
    ],
)
def test_odd_labels_of_a_card_are_left_out(tmp_path: Path, odd: dict[str, object]) -> None:
    page = page_of(tmp_path, PREPARED, {"event": "Finished", "cards": {"test": {"scores": [SCORE], **odd}}})
    assert "41.2 BLEU" in words(page)
    assert "<details><summary>" not in page.split('id="scorecard"')[1].split("</section>")[0]


def test_an_interrupted_run_says_so_until_it_goes_on(tmp_path: Path) -> None:
    interrupted = {"event": "Interrupted", "step": 2}
    page = page_of(tmp_path, PREPARED, step(1), step(2), interrupted)
    assert "Interrupted at step 2 of 10" in words(page)
    assert "data-reload=" not in page
    page = page_of(tmp_path, PREPARED, step(1), step(2), interrupted, PREPARED, {"event": "Resumed", "step": 2})
    assert "Training, step 2 of 10" in words(page)


def test_text_of_the_user_cannot_become_markup(tmp_path: Path) -> None:
    sample = (ATTACK, ATTACK + " more", ATTACK)
    score = SCORE | {"name": ATTACK, "signature": ATTACK}
    entries = [
        PREPARED | {"device": ATTACK, "dropped": {ATTACK: 5}},
        step(1),
        validated(1, 5.0, sample) | {"metric": ATTACK},
        {"event": "Finished", "cards": {ATTACK: {"scores": [score], ATTACK: ATTACK, "worst": [sample]}}},
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


def test_right_to_left_text_is_written_from_the_right(tmp_path: Path) -> None:
    page = page_of(tmp_path, PREPARED, step(1), validated(1, 5.0, ("قطة", "كلب", "قطة")))
    assert '<p class="source" dir="auto">قطة</p>' in page
    assert re.search('<p class="translation" dir="auto">.*ك', page)


def test_nothing_is_loaded_from_elsewhere(tmp_path: Path) -> None:
    page = page_of(tmp_path, PREPARED, step(1), validated(1, 5.0), {"event": "Finished", "scores": {"test": [SCORE]}})
    assert set(re.findall(r"https?://[^\"'\s]*", page)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"\b(src|href)=|@import|url\(", page)
    assert "default-src 'none'" in page


@pytest.mark.parametrize("tail", ['{"event": "Step", "step": 3, "lo', '{"event": "Validated", "step": 2, "bleu": "犬'])
def test_a_line_that_is_being_written_waits(tmp_path: Path, tail: str) -> None:
    assert drawn(page_of(tmp_path, PREPARED, step(1), step(2), tail=tail))["step"] == [1, 2]


def test_a_line_cut_off_by_a_crash_does_not_swallow_the_next(tmp_path: Path) -> None:
    tail = '{"event": "Step", "step": 3, "lo' + json.dumps(step(3, loss=4.5)) + "\n\nnot json\n[1]\n"
    assert drawn(page_of(tmp_path, PREPARED, step(1), step(2), tail=tail))["curves"]["loss"][0] == [8.9, 8.8, 4.5]


def test_of_steps_seen_twice_the_later_count(tmp_path: Path) -> None:
    first = [PREPARED, *map(step, range(1, 6)), validated(3, 20.0), validated(5, 30.0)]
    again = [PREPARED, {"event": "Resumed", "step": 3}, step(4, loss=1.0, time=9e6), step(5, loss=0.5, time=9e6 + 6)]
    seen = drawn(page_of(tmp_path, *first, *again))
    assert seen["step"] == [1, 2, 3, 4, 5]
    assert seen["curves"]["loss"][0] == [8.9, 8.8, 8.7, 1, 0.5]
    assert [row[0] for row in seen["validations"]] == [3]
    assert seen["minute"] == [0.1, 0.2, 0.3, 0.4, 0.5]  # the days between do not count


def test_what_is_unknown_missing_or_no_number(tmp_path: Path) -> None:
    odd = [
        {"event": "Eclipse", "step": 1},
        {"no": "event"},
        {"event": "Prepared"},
        {"event": "Prepared", "n_rows": "many", "dropped": [1]},
        {"event": "Step"},
        {"event": "Step", "step": 1},
        step(2, loss=math.nan, gradient_norm=math.inf, seconds=0, learning_rate="fast"),
        {"event": "Validated", "step": 2},
        {"event": "Validated", "step": 2, "metric": "chrf", "score": 52.25, "sample": ["only one"]},
        {"event": "Resumed"},
        {"event": "Finished", "scores": {"test": [{"name": "BLEU"}, 3]}, "cards": {"test": 7}},
    ]
    for count in range(len(odd) + 1):
        page = page_of(tmp_path, *odd[:count])
        assert Balance(page).open == []
        if count == len(odd):
            assert drawn(page)["curves"]["loss"][0] == [None, None]
            assert drawn(page)["validations"] == [[2, 0, 52.25]]
            assert drawn(page)["metric"] == "chrF"
    (tmp_path / "recipe.toml").write_text("not = = toml", "utf-8")
    assert "not = = toml" in write_report(tmp_path).read_text("utf-8")
    (tmp_path / "recipe.toml").unlink()
    write_report(tmp_path)


def test_a_folder_that_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"is not the folder of a run: it has no log\.jsonl"):
        write_report(tmp_path)


def test_thinning_keeps_a_spike_and_skips_what_is_no_number() -> None:
    values = np.ones(123_457)
    values[77_777], values[99_999], values[5] = 50.0, -3.0, np.nan
    downsampled = downsample(values.tolist(), bucket_starts(len(values)))
    assert len(downsampled.mean) == 1000
    assert downsampled.high.max() == 50.0
    assert downsampled.low.min() == -3.0
    assert np.isfinite(downsampled.mean).all()
    assert np.isnan(downsample([math.nan, math.inf, 1.0], bucket_starts(3)).mean).tolist() == [True, True, False]
    assert len(bucket_starts(0)) == len(downsample([], bucket_starts(0)).mean) == 0


def test_of_a_long_log_only_what_it_gained_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_what_a_translation_has_beyond_the_reference_is_marked() -> None:
    assert compared("the red cat sat", "the cat sat down").endswith(">the <i>red</i> cat sat</p>")
    assert compared("两只猫睡觉。", "两只狗睡觉。").endswith(">两只<i>猫</i>睡觉。</p>")
    assert compared("GetWeather", "PlayMusic").endswith("><i>GetWeather</i></p>")
    assert compared("", "a").endswith("></p>")


def test_a_run_keeps_its_page(tmp_path: Path, recipe_table: Table) -> None:
    looks = []
    for event in follow(run(Recipe.from_table(recipe_table()), tmp_path), tmp_path):
        if isinstance(event, Validated | Finished):
            looks.append(words((tmp_path / "report.html").read_text("utf-8")))
            assert not isinstance(event, Validated) or len(event.samples) == 4
    assert "Training, step 3 of 6" in looks[0]
    assert "Finished after step 6" in looks[-1]
    assert not list(tmp_path.glob("*.partial"))
    delete_run(tmp_path)
    assert not (tmp_path / "report.html").exists()


def test_a_page_that_cannot_be_written_stops_no_training(tmp_path: Path, recipe_table: Table) -> None:
    events = follow(run(Recipe.from_table(recipe_table()), tmp_path), tmp_path)
    next(events)
    (tmp_path / "report.html").unlink()
    (tmp_path / "report.html").mkdir()
    assert isinstance(list(events)[-1], Finished)
    assert not list(tmp_path.glob("*.partial"))
    with pytest.raises(OSError, match=r"report\.html"):
        write_report(tmp_path)
