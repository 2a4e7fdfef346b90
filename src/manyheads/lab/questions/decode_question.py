"""Greedy, beam search or sampling?"""

from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from manyheads.decode import DecodeSettings, Hypothesis, generate
from manyheads.lab.lab_tasks import BOS, EOS, MASK, PAD, LabBatch, LabTask, Translation
from manyheads.lab.question import Answer, Arm, Claim, Comparison, Measure, Plot, Question, Source
from manyheads.lab.setup import Setup
from manyheads.lab.trial import Trained, train_model
from manyheads.language import Bilingual
from manyheads.model import Transformer

_N_SENTENCES = 256
_N_DRAWS = 4


def _trial(setup: Setup, seed: int) -> dict[str, float]:
    assert isinstance(setup.task, Hashable)
    trained = _trained(tuple(setup.model.items()), setup.task, setup.steps, setup.n_rows, setup.learning_rate, seed)
    exact, log_probability, distinct = [], [], []
    for batch in trained.test_batches(_N_SENTENCES):
        references = [tuple(id for id in row if id not in (PAD, EOS)) for row in batch.expected.tolist()]
        draws = [_decode(trained.model, batch, setup.extra, draw) for draw in range(1, 1 + _N_DRAWS)]
        for drawn in draws:
            exact += [one.ids == reference for one, reference in zip(drawn, references, strict=True)]
            log_probability += [one.log_probability for one in drawn]
        distinct += [len({one.ids for one in outputs}) / _N_DRAWS for outputs in zip(*draws, strict=True)]
    return {"exact": fmean(exact), "log_probability": fmean(log_probability), "distinct": fmean(distinct)}


@lru_cache(maxsize=8)
def _trained(
    model: Sequence[tuple[str, Any]], task: LabTask, steps: int, n_rows: int, learning_rate: float, seed: int
) -> Trained:
    """The model of a seed, which all arms share: they differ only in how they decode."""
    setup = Setup(model=dict(model), task=task, steps=steps, n_rows=n_rows, learning_rate=learning_rate)
    return train_model(setup, seed)


def _decode(model: torch.nn.Module, batch: LabBatch, how: Mapping[str, Any], draw: int) -> list[Hypothesis]:
    assert isinstance(model, Transformer)
    source: Tensor | None = batch.source
    assert source is not None
    settings = DecodeSettings(**how, seed=draw)
    hypotheses = generate(model, source, source != PAD, bos=BOS, eos=EOS, forbidden=(PAD, MASK), settings=settings)
    return [found[0] for found in hypotheses]


DECODE = Question(
    id="decode",
    title=Bilingual("Greedy, beam search or sampling?", "贪心、束搜索还是采样？"),
    method=Bilingual(
        "One small model per seed learns to translate the built-in corpus from English into Chinese. Every arm decodes the "
        "same model: greedily, by beam search with four beams and length penalty 0.6, and by sampling from all characters or "
        "from the five most probable. Each of 256 test sentences is decoded four times with different seeds; diversity is the "
        "share of distinct outputs among the four.",
        "每个随机种子训练一个小模型，把内置语料从英文译成中文。各组用同一个模型解码：贪心、束搜索（束宽 4，长度惩罚 0.6）、"
        "从全部字中采样、只从概率最高的五个字中采样。256 个测试句各解码四次，每次种子不同；多样性是四次输出中不同结果的比例。",
    ),
    setup=Setup(
        model={
            "width": 64,
            "n_encoder_layers": 1,
            "n_decoder_layers": 1,
            "feed_forward_width": 128,
            "n_heads": 4,
            "norm_placement": "pre",
            "positions": "rotary",
            "tie_output": False,
        },
        task=Translation(4000),
        steps=400,
        n_rows=32,
        learning_rate=1e-2,
    ),
    full={"steps": 3000},
    arms=(
        Arm("greedy", Bilingual("greedy", "贪心"), {"extra.method": "greedy"}),
        Arm("beam", Bilingual("beam search, 4 beams", "束搜索，束宽 4"), {"extra.method": "beam", "extra.beam": 4}),
        Arm("sample", Bilingual("sampling, temperature 1", "采样，温度 1"), {"extra.method": "sample"}),
        Arm(
            "top-5",
            Bilingual("sampling from the top 5", "采样，只取前 5"),
            {"extra.method": "sample", "extra.top_k": 5},
        ),
    ),
    measures=(
        Measure(
            "exact", Bilingual("equal to the reference, %", "与参考译文完全一致 (%)"), "higher", is_percentage=True
        ),
        Measure(
            "log_probability",
            Bilingual("log-probability of an output, nats", "输出的对数概率 (nat)"),
            "higher",
            digits=2,
        ),
        Measure("distinct", Bilingual("distinct outputs of four, %", "四次输出中不同的比例 (%)"), is_percentage=True),
    ),
    trial=_trial,
    comparisons=(
        Comparison(
            "beam",
            "greedy",
            "log_probability",
            "higher",
            is_key=True,
            because=Bilingual("a poor first choice can be revised", "第一步选错还能补救"),
        ),
        Comparison(
            "beam",
            "greedy",
            "exact",
            "higher",
            because=Bilingual("more probable translations are more often right", "概率更高的译文更可能正确"),
        ),
        Comparison(
            "sample",
            "greedy",
            "exact",
            "lower",
            is_key=True,
            because=Bilingual("sampling also takes improbable characters", "采样会取到低概率的字"),
        ),
        Comparison(
            "sample",
            "greedy",
            "distinct",
            "higher",
            is_key=True,
            because=Bilingual("greedy search always finds the same", "贪心的结果总是相同"),
        ),
        Comparison(
            "top-5",
            "sample",
            "exact",
            "higher",
            because=Bilingual("the improbable tail is cut off", "截去了低概率的尾部"),
        ),
        Comparison(
            "top-5",
            "sample",
            "distinct",
            "lower",
            because=Bilingual("there is less to choose from", "可选的字变少"),
        ),
    ),
    answer=Answer(
        yes=Bilingual(
            "Search where one output is right, sample where variety is wanted. Beam search finds more probable "
            "outputs than greedy search ({{mean decode beam - log_probability}} against "
            "{{mean decode greedy - log_probability}} nats), and {{mean decode beam - exact}} against "
            "{{mean decode greedy - exact}} % of its outputs equal the reference. Of sampled outputs "
            "{{mean decode sample - exact}} % do, but {{mean decode sample - distinct}} % of four samples are "
            "distinct.",
            "只有一个正确答案时用搜索，需要多样性时用采样。"
            "束搜索找到的输出概率更高（{{mean decode beam - log_probability}} nat，贪心为 "
            "{{mean decode greedy - log_probability}} nat），与参考译文完全一致的占 {{mean decode beam - exact}} %，"
            "贪心为 {{mean decode greedy - exact}} %。采样只有 {{mean decode sample - exact}} %，但四次输出中有 "
            "{{mean decode sample - distinct}} % 各不相同。",
        ),
        no=Bilingual(
            "Not all predictions held here. Beam search changes the log-probability by "
            "{{diff decode beam greedy - log_probability}} nats against greedy search, sampling changes the share of "
            "outputs that equal the reference by {{diff decode sample greedy - exact}} points.",
            "本次实验没有全部符合预测。与贪心相比，束搜索使对数概率变化 "
            "{{diff decode beam greedy - log_probability}} nat，采样使与参考译文一致的比例变化 "
            "{{diff decode sample greedy - exact}} 个百分点。",
        ),
    ),
    plots=(Plot("exact"), Plot("log_probability"), Plot("distinct")),
    sources=(
        Source(
            "Vaswani et al. 2017, section 6.1",
            Bilingual("Beam search with 4 beams and length penalty 0.6.", "束搜索，束宽 4，长度惩罚 0.6。"),
        ),
        Source(
            "Holtzman et al. 2020",
            Bilingual(
                "For open-ended text, search gives dull repetition, and sampling from a truncated distribution reads better.",
                "开放式生成时，搜索的结果单调重复，从截断后的分布中采样更自然。",
            ),
        ),
    ),
    claims=(
        Claim(
            Bilingual("Beam search finds the most probable output.", "束搜索能找到概率最高的输出。"),
            "half",
            Bilingual(
                "It finds a more probable one than greedy search ({{diff decode beam greedy - log_probability}} nats), but keeps "
                "only four hypotheses per step and guarantees nothing.",
                "比贪心的概率高（{{diff decode beam greedy - log_probability}} nat），但每步只留四个候选，并不保证最优。",
            ),
        ),
        Claim(
            Bilingual("Beam search translates much better than greedy search.", "束搜索的翻译质量远好于贪心。"),
            "wrong",
            Bilingual(
                "The share of translations that equal the reference changes by {{diff decode beam greedy - exact}} "
                "points.",
                "与参考译文完全一致的比例只变化 {{diff decode beam greedy - exact}} 个百分点。",
            ),
        ),
    ),
)
