"""What was predicted and what was measured, for all questions: docs/lab.md and docs/lab.zh.md.

`python -m manyheads.lab.prediction_table` writes both; a test fails if they are not those of the shipped results.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from manyheads.lab.lab_answers import Answered, expectation_name, shipped_answers, verdict_name
from manyheads.language import Bilingual, Language

_TITLE = Bilingual("The lab", "实验室")
_INTRO = Bilingual(
    "Every “why” of the Transformer as an experiment: `manyheads lab` lists the questions, `manyheads lab scale` runs "
    "one. Below are the results that come with manyheads. Differences are paired by seed, with 95 % intervals; “clear” "
    "means p < 0.05 after Holm's correction over the comparisons of a question; × marks a ratio. Predictions come from "
    "theory and the literature, mostly after a pilot run of one or two seeds; where a result contradicts one, the "
    "prediction stays as it was. Models are tiny, training takes seconds, and learning rates come from small grids.",
    "把 Transformer 的每个“为什么”做成实验：`manyheads lab` 列出问题，`manyheads lab scale` 运行其中一个。"
    "下面是随 manyheads 发布的结果。差值按随机种子配对，方括号内为 95 % 置信区间；"
    "“明显”指在该问题的所有比较中经 Holm 校正后 p < 0.05；× 表示比值。"
    "预测来自理论和文献，多数写于一两个种子的试运行之后；结果与预测相反时，预测保持原样。模型很小，每次只训练几秒，学习率从少数几档中选出。",
)


def prediction_page(answers: Mapping[str, Answered], language: Language) -> str:
    """The page in one language."""
    index = 1 if language == "zh" else 0
    return "\n".join(_lines(answers, index)) + "\n"


def count_verdicts(answers: Mapping[str, Answered]) -> dict[str, int]:
    """How many comparisons came out as predicted, contrary, or not distinguishable, and how many are clear effects.

    Computed values, which do not depend on the seed, do not count as effects.
    """
    effects = [effect for one in answers.values() for effect in one.effects]
    n_computed = sum(effect.is_computed for effect in effects)
    n_clear = sum(effect.is_clear and not effect.is_computed for effect in effects)
    counts = {"comparisons": len(effects), "computed": n_computed, "clear": n_clear}
    for verdict in ("as predicted", "contrary", "not distinguishable"):
        counts[verdict] = sum(effect.verdict == verdict for effect in effects)
    return counts


def _lines(answers: Mapping[str, Answered], index: int) -> Iterator[str]:
    counts = count_verdicts(answers)
    yield f"# {_TITLE[index]}"
    yield ""
    yield _INTRO[index]
    yield ""
    yield _count_sentence(len(answers), counts)[index]
    for name, answered in answers.items():
        yield ""
        yield f"## {answered.question.title[index]}"
        yield ""
        yield f"`manyheads lab {name}` · {answered.results.stamp['date']}"
        yield ""
        yield answered.answer[index]
        yield ""
        yield ("| comparison | predicted | measured | |", "| 比较 | 预测 | 结果 | |")[index]
        yield "| --- | --- | --- | --- |"
        for effect in answered.effects:
            cells = (
                answered.describe(effect.comparison)[index],
                expectation_name(effect)[index],
                answered.difference(effect),
                verdict_name(effect)[index],
            )
            yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _count_sentence(n_questions: int, counts: Mapping[str, int]) -> Bilingual:
    n_all, predicted, contrary = counts["comparisons"], counts["as predicted"], counts["contrary"]
    unclear, clear, computed = counts["not distinguishable"], counts["clear"], counts["computed"]
    return Bilingual(
        f"{n_all} comparisons in {n_questions} questions: {predicted} as predicted, {contrary} contrary to the "
        f"prediction, {unclear} not distinguishable. {clear} are clear effects; {computed} compare computed values, "
        "which do not depend on chance. `manyheads lab cards` puts the answers on one page that prints well.",
        f"{n_questions} 个问题，{n_all} 项比较：{predicted} 项符合预测，{contrary} 项与预测相反，"
        f"{unclear} 项没有可分辨的差异；其中 {clear} 项是明显的效应，"
        f"{computed} 项比较的是计算值，与随机性无关。`manyheads lab cards` 把答案汇成一页，可以打印。",
    )


if __name__ == "__main__":
    for _language, _file in (("en", "lab.md"), ("zh", "lab.zh.md")):
        Path("docs", _file).write_text(prediction_page(shipped_answers(), _language), encoding="utf-8")
