"""Why warm up the learning rate?"""

from manyheads.lab.lab_tasks import Lookup
from manyheads.lab.question import (
    ACCURACY,
    Answer,
    Arm,
    Changes,
    Claim,
    Comparison,
    Condition,
    Measure,
    Plot,
    Question,
    Source,
)
from manyheads.lab.setup import Setup
from manyheads.lab.trial import train_model
from manyheads.language import Bilingual

_STEPS = 120


def _trial(setup: Setup, seed: int) -> dict[str, float]:
    return train_model(setup, seed).test_scores()


def _arm(percent: int, en: str, zh: str) -> Arm:
    return Arm(f"{percent}%", Bilingual(en, zh), {"warmup": max(1, round(_STEPS * percent / 100))})


def _condition(name: str, en: str, zh: str, placement: str, changes: Changes) -> Condition:
    return Condition(name, Bilingual(en, zh), {"model.norm_placement": placement, **changes})


WARM_UP = Question(
    id="warm-up",
    title=Bilingual("Why warm up the learning rate?", "学习率为什么要预热？"),
    method=Bilingual(
        "Four encoder layers (width 32) learn to look up one of four records by its key. The learning rate rises to its "
        "peak over 1, 10 or 25 % of the steps and then falls along a cosine. The peak is tuned for each cell, or is a high "
        "one that is the same for all: 0.02. As post-norm learned next to nothing at 0.02, a peak of 0.01 was added later.",
        "四层编码器（宽度 32）学习按键查找，从四条记录中找出一条。学习率在前 1 %、10 % 或 25 % 的步数内升到峰值，"
        "之后按余弦下降。峰值或者逐组调优，或者统一取较高的 0.02。Post-Norm 在 0.02 下几乎学不到东西，因此后来补做了 0.01。",
    ),
    setup=Setup(
        model={"width": 32, "n_encoder_layers": 4, "feed_forward_width": 64, "n_heads": 4, "positions": "none"},
        task=Lookup(n_keys=8, n_values=8, n_records=(4, 4)),
        n_rows=32,
        steps=_STEPS,
    ),
    full={"n_rows": 128},
    arms=(
        _arm(1, "warm-up over 1 % of the steps", "预热占 1 %"),
        _arm(10, "warm-up over 10 %", "预热占 10 %"),
        _arm(25, "warm-up over 25 %", "预热占 25 %"),
    ),
    conditions=(
        _condition("post", "post-norm, tuned rate", "Post-Norm，学习率调优", "post", {}),
        _condition("pre", "pre-norm, tuned rate", "Pre-Norm，学习率调优", "pre", {}),
        _condition("post-middle", "post-norm, peak 0.01", "Post-Norm，峰值 0.01", "post", {"learning_rate": 1e-2}),
        _condition("post-high", "post-norm, peak 0.02", "Post-Norm，峰值 0.02", "post", {"learning_rate": 2e-2}),
        _condition("pre-high", "pre-norm, peak 0.02", "Pre-Norm，峰值 0.02", "pre", {"learning_rate": 2e-2}),
    ),
    measures=(
        ACCURACY,
        Measure("loss", Bilingual("held-out loss, nats", "测试损失 (nat)"), "lower", digits=2),
    ),
    tuned_on="accuracy",
    learning_rates=(3e-3, 1e-2),
    n_tuning_seeds=1,
    trial=_trial,
    comparisons=(
        Comparison(
            "1%",
            "25%",
            "accuracy",
            "lower",
            condition="post-high",
            is_key=True,
            because=Bilingual("large early gradients near the output upset post-norm", "靠近输出的早期梯度过大"),
        ),
        Comparison(
            "10%",
            "25%",
            "accuracy",
            "lower",
            condition="post-high",
            because=Bilingual("a high peak needs a longer warm-up", "峰值越高，预热要越长"),
        ),
        Comparison(
            "1%",
            "25%",
            "accuracy",
            "lower",
            condition="post-middle",
            because=Bilingual("the same, at a rate where post-norm learns", "同上，换成 Post-Norm 学得动的学习率"),
        ),
        Comparison(
            "10%",
            "25%",
            "accuracy",
            "lower",
            condition="post-middle",
            because=Bilingual("a high peak needs a longer warm-up", "峰值越高，预热要越长"),
        ),
        Comparison(
            "1%",
            "25%",
            "accuracy",
            "lower",
            condition="post",
            because=Bilingual("a lower peak replaces warm-up only in part", "降低峰值只能部分代替预热"),
        ),
        Comparison(
            "1%",
            "25%",
            "accuracy",
            "same",
            condition="pre",
            margin=0.05,
            because=Bilingual("pre-norm gradients are well-behaved from the start", "Pre-Norm 的梯度一开始就平稳"),
        ),
        Comparison(
            "1%",
            "25%",
            "accuracy",
            "same",
            condition="pre-high",
            margin=0.05,
            because=Bilingual("the same, at the high rate", "同上，高学习率"),
        ),
        Comparison(
            "25%",
            "25%",
            "accuracy",
            "lower",
            condition="post-high",
            against_condition="pre-high",
            is_key=True,
            because=Bilingual("pre-norm bears higher rates", "Pre-Norm 能承受更高的学习率"),
        ),
    ),
    answer=Answer(
        yes=Bilingual(
            "Warm-up protects a post-norm stack from its own early updates. At a peak rate of 0.02, post-norm reaches "
            "{{mean warm-up 1% post-high accuracy}} % with almost no warm-up and "
            "{{mean warm-up 25% post-high accuracy}} % with 25 %; pre-norm reaches "
            "{{mean warm-up 1% pre-high accuracy}} % and {{mean warm-up 25% pre-high accuracy}} %. With a tuned peak, "
            "post-norm reaches {{mean warm-up 1% post accuracy}} % and {{mean warm-up 25% post accuracy}} %.",
            "预热保护 Post-Norm 不被早期的大步更新弄坏。峰值 0.02 时，Post-Norm 几乎不预热为 "
            "{{mean warm-up 1% post-high accuracy}} %，预热 25 % 为 {{mean warm-up 25% post-high accuracy}} %；"
            "Pre-Norm 分别为 {{mean warm-up 1% pre-high accuracy}} % 和 {{mean warm-up 25% pre-high accuracy}} %。"
            "峰值调优后，Post-Norm 为 {{mean warm-up 1% post accuracy}} % 和 {{mean warm-up 25% post accuracy}} %。",
        ),
        no=Bilingual(
            "It keeps the early updates small, which should help post-norm most; here this shows only in part. "
            "Warm-up over 1 % instead of 25 % of the steps changes post-norm by "
            "{{diff warm-up 1% 25% post-high accuracy}} points at a peak of 0.02, by "
            "{{diff warm-up 1% 25% post-middle accuracy}} at 0.01 and by {{diff warm-up 1% 25% post accuracy}} at a "
            "tuned peak. It changes pre-norm by {{diff warm-up 1% 25% pre-high accuracy}} points at 0.02 and by "
            "{{diff warm-up 1% 25% pre accuracy}} at a tuned peak.",
            "预热使早期的更新不致过大，按理对 Post-Norm 最有用；本次实验只部分符合。预热从 25 % 的步数减到 1 %，"
            "Post-Norm 在峰值 0.02 时变化 {{diff warm-up 1% 25% post-high accuracy}} 个百分点，0.01 时变化 "
            "{{diff warm-up 1% 25% post-middle accuracy}} 个百分点，峰值调优后变化 "
            "{{diff warm-up 1% 25% post accuracy}} 个百分点。Pre-Norm 在 0.02 时变化 "
            "{{diff warm-up 1% 25% pre-high accuracy}} 个百分点，调优后变化 {{diff warm-up 1% 25% pre accuracy}} "
            "个百分点。",
        ),
    ),
    plots=(Plot("accuracy"), Plot("loss")),
    sources=(
        Source(
            "Xiong et al. 2020",
            Bilingual(
                "Post-norm without warm-up: 8.45 BLEU, with it about 34. Pre-norm trains without warm-up.",
                "Post-Norm 不预热只有 8.45 BLEU，预热后约 34；Pre-Norm 不预热也能训练。",
            ),
        ),
        Source(
            "Vaswani et al. 2017, section 5.3",
            Bilingual(
                "Warms up over the first 4,000 of 100,000 steps, with post-norm.",
                "采用 Post-Norm，10 万步中的前 4000 步用于预热。",
            ),
        ),
    ),
    claims=(
        Claim(
            Bilingual("A Transformer cannot be trained without warm-up.", "Transformer 不预热就训练不起来。"),
            "half",
            Bilingual(
                "At a high rate, post-norm does suffer: {{mean warm-up 1% post-middle accuracy}} % with almost no "
                "warm-up, {{mean warm-up 25% post-middle accuracy}} % with 25 % of the steps. At a tuned rate it "
                "trains with almost none, too: {{mean warm-up 1% post accuracy}} % (with 25 %, "
                "{{mean warm-up 25% post accuracy}} %, no clear difference). Pre-norm does so even at twice that "
                "high rate, {{mean warm-up 1% pre-high accuracy}} %, but longer warm-up changes it by "
                "{{diff warm-up 25% 1% pre-high accuracy}} points.",
                "学习率高时，Post-Norm 确实受影响：几乎不预热 {{mean warm-up 1% post-middle accuracy}} %，预热 25 % "
                "的步数为 {{mean warm-up 25% post-middle accuracy}} %。学习率调优后，几乎不预热也能训练："
                "{{mean warm-up 1% post accuracy}} %（预热 25 % 为 {{mean warm-up 25% post accuracy}} %，差异不明显）"
                "。Pre-Norm 在高一倍的学习率下几乎不预热也有 {{mean warm-up 1% pre-high accuracy}} %，"
                "延长预热使它变化 {{diff warm-up 25% 1% pre-high accuracy}} 个百分点。",
            ),
        ),
    ),
)
