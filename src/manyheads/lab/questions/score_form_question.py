"""Is the scaled dot product the only way to score?"""

from manyheads.lab.lab_tasks import Lookup, Reorder
from manyheads.lab.probes import pass_milliseconds
from manyheads.lab.question import ACCURACY, Answer, Arm, Claim, Comparison, Condition, Measure, Plot, Question, Source
from manyheads.lab.setup import Setup
from manyheads.lab.trial import count_parameters, train_model
from manyheads.language import Bilingual

_TIMED = {"task": Reorder("previous", lengths=(64, 64)), "n_rows": 16}


def _trial(setup: Setup, seed: int) -> dict[str, float]:
    trained = train_model(setup, seed)
    return {
        "accuracy": trained.test_scores()["accuracy"],
        "time": pass_milliseconds(setup.changed(_TIMED), seed),
        "parameters": count_parameters(trained.model),
    }


def _arm(name: str, en: str, zh: str) -> Arm:
    return Arm(name, Bilingual(en, zh), {"model.scores": name})


SCORE_FORM = Question(
    id="score-form",
    title=Bilingual("Is the scaled dot product the only form of attention?", "注意力分数只能用缩放点积吗？"),
    method=Bilingual(
        "One attention layer with four heads looks up a record by its key, or repeats the previous symbol. Only the "
        "way in which scores are computed differs. The time is the processor time of one forward and backward pass "
        "over 16 sequences of 64 tokens, the median of several; dot products use the fused kernel of PyTorch, the "
        "others cannot.",
        "单层四头注意力学习按键查找一条记录，或输出前一个符号，只改变分数的计算方式。时间是对 16 个序列、每个 64 "
        "个词元做一次前向和反向的处理器时间，取多次的中位数；点积类形式使用 PyTorch 的融合算子，其余形式无法使用。",
    ),
    setup=Setup(
        model={
            "width": 64,
            "n_encoder_layers": 1,
            "feed_forward_width": 128,
            "n_heads": 4,
            "norm_placement": "pre",
            "max_length": 64,
        },
        task=Lookup(),
        steps=200,
    ),
    full={"steps": 2000},
    arms=(
        _arm("scaled-dot", "scaled dot product", "缩放点积"),
        _arm("dot", "dot product, not scaled", "点积（不缩放）"),
        _arm("additive", "additive", "加性"),
        _arm("bilinear", "bilinear", "双线性"),
        _arm("cosine", "cosine", "余弦"),
        _arm("dense-synthesizer", "dense synthesizer", "稠密合成器"),
        _arm("random-synthesizer", "random synthesizer", "随机合成器"),
    ),
    conditions=(
        Condition("lookup", Bilingual("lookup", "按键查找")),
        Condition(
            "previous",
            Bilingual("previous symbol", "前一个符号"),
            {"task": Reorder("previous", lengths=(8, 12))},
        ),
    ),
    # Where only positions matter, one form that compares tokens and one that does not are enough.
    skipped=tuple((name, "previous") for name in ("dot", "additive", "bilinear", "cosine", "dense-synthesizer")),
    measures=(
        ACCURACY,
        Measure(
            "time",
            Bilingual("time of one pass, ms", "一次前向加反向的时间 (ms)"),
            "lower",
            digits=1,
            is_logarithmic=True,
        ),
        Measure("parameters", Bilingual("parameters", "参数量"), digits=0),
    ),
    tuned_on="accuracy",
    learning_rates=(3e-3, 1e-2),
    n_tuning_seeds=1,
    measures_time=True,
    trial=_trial,
    comparisons=(
        Comparison(
            "additive",
            "scaled-dot",
            "accuracy",
            "same",
            condition="lookup",
            margin=0.05,
            because=Bilingual("both can compare any query with any key", "两者都能比较任意查询与键"),
        ),
        Comparison(
            "bilinear",
            "scaled-dot",
            "accuracy",
            "same",
            condition="lookup",
            margin=0.05,
            because=Bilingual("W^Q can absorb the extra matrix", "多出的矩阵可以并入 W^Q"),
        ),
        Comparison(
            "cosine",
            "scaled-dot",
            "accuracy",
            "same",
            condition="lookup",
            margin=0.05,
            because=Bilingual("a learned temperature replaces the length of vectors", "可学习的温度代替了向量长度"),
        ),
        Comparison(
            "dense-synthesizer",
            "scaled-dot",
            "accuracy",
            "lower",
            condition="lookup",
            is_key=True,
            because=Bilingual("the query does not see which record has the key", "查询看不到哪条记录有这个键"),
        ),
        Comparison(
            "random-synthesizer",
            "scaled-dot",
            "accuracy",
            "lower",
            condition="lookup",
            is_key=True,
            because=Bilingual("fixed weights cannot depend on the key asked for", "固定权重与所查的键无关"),
        ),
        Comparison(
            "random-synthesizer",
            "scaled-dot",
            "accuracy",
            "same",
            condition="previous",
            margin=0.05,
            is_key=True,
            because=Bilingual("a fixed table of positions is all it takes", "只需一张固定的位置表"),
        ),
        Comparison(
            "additive",
            "scaled-dot",
            "time",
            "higher",
            condition="lookup",
            is_key=True,
            because=Bilingual(
                "tanh of n² × d_k numbers instead of a matrix product", "要算 n² × d_k 次 tanh，而不是矩阵乘法"
            ),
        ),
    ),
    answer=Answer(
        yes=Bilingual(
            "No: any form that compares queries with keys can work. Lookup reaches {{mean score-form scaled-dot lookup accuracy}} % "
            "with the scaled dot product, {{mean score-form additive lookup accuracy}} % with the additive form, "
            "{{mean score-form cosine lookup accuracy}} % with cosine, but "
            "{{mean score-form dense-synthesizer lookup accuracy}} % and {{mean score-form random-synthesizer lookup accuracy}} % "
            "with synthesizers, which ignore the keys. The scaled dot product is chosen for speed: an additive pass takes "
            "{{ratio score-form additive scaled-dot lookup time}} times as long.",
            "不是：只要能比较查询与键，都可以。按键查找的准确率：缩放点积 {{mean score-form scaled-dot lookup accuracy}} %，"
            "加性 {{mean score-form additive lookup accuracy}} %，余弦 {{mean score-form cosine lookup accuracy}} %；"
            "而不看键的合成器只有 {{mean score-form dense-synthesizer lookup accuracy}} % 和 "
            "{{mean score-form random-synthesizer lookup accuracy}} %。选用缩放点积主要因为快：加性形式一次前向加反向的耗时是它的 "
            "{{ratio score-form additive scaled-dot lookup time}} 倍。",
        ),
        no=Bilingual(
            "No, other forms can be trained as well. Lookup reaches {{mean score-form scaled-dot lookup accuracy}} % "
            "with the scaled dot product, {{mean score-form additive lookup accuracy}} % with the additive form, "
            "{{mean score-form cosine lookup accuracy}} % with cosine, and "
            "{{mean score-form random-synthesizer lookup accuracy}} % with fixed weights; the previous symbol "
            "{{mean score-form scaled-dot previous accuracy}} % with the scaled dot product and "
            "{{mean score-form random-synthesizer previous accuracy}} % with fixed weights. An additive pass takes "
            "{{ratio score-form additive scaled-dot lookup time}} times as long as a scaled dot product. Not all of "
            "this is as predicted.",
            "不是，其他形式也可以训练。按键查找的准确率：缩放点积 {{mean score-form scaled-dot lookup accuracy}} %，"
            "加性 {{mean score-form additive lookup accuracy}} %，余弦 {{mean score-form cosine lookup accuracy}} %，"
            "固定权重 {{mean score-form random-synthesizer lookup accuracy}} %；输出前一个符号：缩放点积 "
            "{{mean score-form scaled-dot previous accuracy}} %，固定权重 "
            "{{mean score-form random-synthesizer previous accuracy}} %。加性形式一次前向加反向的耗时是缩放点积的 "
            "{{ratio score-form additive scaled-dot lookup time}} 倍。结果与预测不完全一致。",
        ),
    ),
    plots=(Plot("accuracy"), Plot("time", conditions=("lookup",))),
    sources=(
        Source(
            "Vaswani et al. 2017, section 3.2.1",
            Bilingual(
                "Additive and dot-product attention have similar complexity in theory, but the dot product is much faster and "
                "needs less memory in practice, because it is a matrix product.",
                "加性注意力与点积注意力理论复杂度相近，但点积可以用矩阵乘法实现，实际快得多，也更省内存。",
            ),
        ),
        Source(
            "Tay et al. 2021 (Synthesizer)",
            Bilingual(
                "Fixed random weights do surprisingly well on translation and language modeling; comparing tokens is useful, "
                "but matters less than assumed.",
                "在翻译和语言模型上，固定的随机权重也相当不错；词元之间的比较有用，但没有想象的那么重要。",
            ),
        ),
    ),
    claims=(
        Claim(
            Bilingual("Attention has to be computed by a scaled dot product.", "注意力只能用缩放点积来计算。"),
            "wrong",
            Bilingual(
                "Other forms learn the lookup, too, one of them better, though we predicted no difference. The additive form differs from it by {{diff score-form additive scaled-dot lookup accuracy}} points, the "
                "bilinear form by {{diff score-form bilinear scaled-dot lookup accuracy}}, cosine by "
                "{{diff score-form cosine scaled-dot lookup accuracy}}.",
                "其他形式也能学会查找，有的还更好，虽然我们预测没有差别。与缩放点积相比，加性相差 {{diff score-form additive scaled-dot lookup accuracy}} 个百分点，双线性 "
                "{{diff score-form bilinear scaled-dot lookup accuracy}}，余弦 "
                "{{diff score-form cosine scaled-dot lookup accuracy}}。",
            ),
        ),
        Claim(
            Bilingual(
                "Attention needs neither queries nor keys: synthesizers do as well.",
                "注意力不需要查询和键，合成器同样好。",
            ),
            "half",
            Bilingual(
                "Where only positions matter, fixed weights reach {{mean score-form random-synthesizer previous accuracy}} %. To look "
                "up a key they reach {{mean score-form random-synthesizer lookup accuracy}} %: weights that ignore the "
                "content cannot find it.",
                "只与位置有关的任务，固定权重的准确率为 {{mean score-form random-synthesizer previous accuracy}} %；"
                "按键查找只有 {{mean score-form random-synthesizer lookup accuracy}} %：权重不看内容，就找不到内容。",
            ),
        ),
    ),
)
