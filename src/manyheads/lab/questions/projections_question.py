"""Why three projections?"""

from manyheads.lab.lab_tasks import Lookup, Reorder
from manyheads.lab.probes import self_weight
from manyheads.lab.question import ACCURACY, Answer, Arm, Claim, Comparison, Condition, Measure, Plot, Question, Source
from manyheads.lab.setup import Setup
from manyheads.lab.trial import count_parameters, train_model, untrained
from manyheads.language import Bilingual


def _trial(setup: Setup, seed: int) -> dict[str, float]:
    trained = train_model(setup, seed)
    return {
        "accuracy": trained.test_scores()["accuracy"],
        "self_start": self_weight(untrained(setup, seed)),
        "self_end": self_weight(trained),
        "parameters": count_parameters(trained.model),
    }


PROJECTIONS = Question(
    id="projections",
    title=Bilingual("Why three projections W^Q, W^K and W^V?", "为什么 Q、K、V 要用三个不同的投影矩阵？"),
    method=Bilingual(
        "One attention layer with four heads repeats the previous symbol of a sequence, or looks up a record by its "
        "key. It has three matrices, two (W^Q = W^K), one, or none. A further arm has W^Q = W^K with heads that are "
        "twice as wide in queries and keys, which gives it the number of parameters of three matrices.",
        "单层四头注意力学习两项任务：输出前一个符号；按键查找一条记录。分别使用三个矩阵、两个（W^Q = W^K）、一个，"
        "或完全不用。另有一组令 W^Q = W^K，但查询和键的宽度加倍，使参数量与三个矩阵时相同。",
    ),
    setup=Setup(
        model={"width": 64, "n_encoder_layers": 1, "feed_forward_width": 128, "n_heads": 4, "norm_placement": "pre"},
        task=Lookup(),
        steps=300,
    ),
    full={"steps": 2000},
    arms=(
        Arm("separate", Bilingual("separate", "三个矩阵")),
        Arm("tied", Bilingual("W^Q = W^K", "W^Q = W^K"), {"model.projections": "tied"}),
        Arm(
            "matched",
            Bilingual("W^Q = W^K, twice as wide", "W^Q = W^K，宽度加倍"),
            {"model.projections": "tied", "model.head_width": 32, "model.value_width": 16},
        ),
        Arm("shared", Bilingual("W^Q = W^K = W^V", "W^Q = W^K = W^V"), {"model.projections": "shared"}),
        Arm("none", Bilingual("none", "不用投影"), {"model.projections": "none"}),
    ),
    conditions=(
        Condition(
            "previous",
            Bilingual("previous symbol", "前一个符号"),
            {"task": Reorder("previous", lengths=(8, 12)), "steps": 200},
        ),
        Condition("lookup", Bilingual("lookup", "按键查找")),
    ),
    measures=(
        ACCURACY,
        Measure(
            "self_start",
            Bilingual("weight of a token on itself before training, %", "训练前词元对自身的权重 (%)"),
            is_percentage=True,
        ),
        Measure(
            "self_end",
            Bilingual("weight of a token on itself after training, %", "训练后词元对自身的权重 (%)"),
            is_percentage=True,
        ),
        Measure("parameters", Bilingual("parameters", "参数量"), digits=0),
    ),
    tuned_on="accuracy",
    learning_rates=(3e-3, 1e-2),
    n_tuning_seeds=1,
    trial=_trial,
    comparisons=(
        Comparison(
            "tied",
            "separate",
            "accuracy",
            "lower",
            condition="previous",
            is_key=True,
            because=Bilingual("symmetric scores look ahead whenever they look back", "分数对称：向前看就必然也向后看"),
        ),
        Comparison(
            "matched",
            "separate",
            "accuracy",
            "lower",
            condition="previous",
            is_key=True,
            because=Bilingual("more parameters do not break the symmetry", "增加参数打破不了对称"),
        ),
        Comparison(
            "tied",
            "separate",
            "accuracy",
            "same",
            condition="lookup",
            margin=0.05,
            because=Bilingual(
                "queries and records are different tokens: symmetry is harmless", "查询与记录是不同的词元，对称无妨"
            ),
        ),
        Comparison(
            "shared",
            "tied",
            "accuracy",
            "lower",
            condition="lookup",
            because=Bilingual("one vector has to serve both matching and content", "同一个向量既要匹配又要提供内容"),
        ),
        Comparison(
            "none",
            "separate",
            "accuracy",
            "lower",
            condition="previous",
            is_key=True,
            because=Bilingual("x·x is the largest score: tokens attend to themselves", "x·x 最大，词元只看自己"),
        ),
        Comparison(
            "none",
            "separate",
            "accuracy",
            "lower",
            condition="lookup",
            because=Bilingual("only the embeddings can learn to match", "只能靠词嵌入学会匹配"),
        ),
        Comparison(
            "tied",
            "separate",
            "self_start",
            "higher",
            condition="lookup",
            because=Bilingual("q·q = |q|² exceeds random dot products", "q·q = |q|² 大于随机的点积"),
        ),
        Comparison(
            "tied",
            "separate",
            "self_end",
            "higher",
            condition="previous",
            because=Bilingual("training has to work against |q|²", "训练要与 |q|² 对抗"),
        ),
    ),
    answer=Answer(
        yes=Bilingual(
            "Separate matrices let a token look for other tokens: with W^Q = W^K the scores are symmetric and favor "
            "the token itself. Repeating the previous symbol, three matrices reach an accuracy of "
            "{{mean projections separate previous accuracy}} %, W^Q = W^K "
            "{{mean projections tied previous accuracy}} %, W^Q = W^K with as many parameters "
            "{{mean projections matched previous accuracy}} %, and no matrices "
            "{{mean projections none previous accuracy}} %. In lookup, three matrices reach "
            "{{mean projections separate lookup accuracy}} % and W^Q = W^K {{mean projections tied lookup accuracy}} "
            "%.",
            "三个矩阵分开，词元才能有方向地去找别的词元：W^Q = W^K 时分数对称，而且偏向词元自身。输出前一个符号时，"
            "三个矩阵的准确率为 {{mean projections separate previous accuracy}} %，W^Q = W^K 为 "
            "{{mean projections tied previous accuracy}} %，参数补足后为 "
            "{{mean projections matched previous accuracy}} %，不用投影为 "
            "{{mean projections none previous accuracy}} %。按键查找时，三个矩阵为 "
            "{{mean projections separate lookup accuracy}} %，W^Q = W^K 为 {{mean projections tied lookup accuracy}} "
            "%。",
        ),
        no=Bilingual(
            "Here separate matrices were not clearly better in every case: to repeat the previous symbol, W^Q = W^K differs by "
            "{{diff projections tied separate previous accuracy}} points, and by "
            "{{diff projections matched separate previous accuracy}} with equally many parameters.",
            "本次实验中，三个矩阵并非在每种情况下都明显更好：输出前一个符号时，W^Q = W^K 相差 "
            "{{diff projections tied separate previous accuracy}} 个百分点，参数补足后相差 "
            "{{diff projections matched separate previous accuracy}} 个百分点。",
        ),
    ),
    plots=(Plot("accuracy"), Plot("self_start"), Plot("self_end")),
    sources=(
        Source(
            "Kitaev et al. 2020 (Reformer)",
            Bilingual(
                "Shares W^Q and W^K and lets no token attend to itself unless it must; reports no loss of quality on text.",
                "令 W^Q = W^K，并规定词元尽量不看自己；报告在文本上质量没有下降。",
            ),
        ),
        Source(
            "Kayyam et al. 2026",
            Bilingual(
                "In a language model, one matrix for keys and values raises perplexity by 3.1 %; W^Q = W^K takes away the "
                "direction of attention.",
                "在语言模型中，键和值共用一个矩阵，困惑度上升 3.1 %；令 W^Q = W^K 则会使注意力失去方向性。",
            ),
        ),
    ),
    claims=(
        Claim(
            Bilingual(
                "Q = K makes attention an identity matrix: every token attends to itself only.",
                "Q = K 会让注意力变成单位矩阵，每个词元只看自己。",
            ),
            "half",
            Bilingual(
                "Tokens do prefer themselves, but the matrix is not the identity. In lookup, a token gives itself "
                "{{mean projections tied lookup self_start}} % of its weight before training and "
                "{{mean projections tied lookup self_end}} % after it, with separate matrices "
                "{{mean projections separate lookup self_start}} % and {{mean projections separate lookup self_end}} "
                "%. Repeating the previous symbol, it is {{mean projections tied previous self_start}} % before and "
                "{{mean projections tied previous self_end}} % after training.",
                "确实偏向自己，但不是单位矩阵。按键查找时，词元给自己的权重训练前为 "
                "{{mean projections tied lookup self_start}} %，训练后为 {{mean projections tied lookup self_end}} "
                "%；三个矩阵时分别为 {{mean projections separate lookup self_start}} % 和 "
                "{{mean projections separate lookup self_end}} %。输出前一个符号时，训练前为 "
                "{{mean projections tied previous self_start}} %，训练后为 "
                "{{mean projections tied previous self_end}} %。",
            ),
        ),
        Claim(
            Bilingual(
                "Three matrices are better only because they have more parameters.", "用三个矩阵只是因为参数更多。"
            ),
            "wrong",
            Bilingual(
                "With {{mean projections matched previous parameters}} parameters against "
                "{{mean projections separate previous parameters}}, W^Q = W^K still differs by "
                "{{diff projections matched separate previous accuracy}} points: the scores stay symmetric.",
                "参数量 {{mean projections matched previous parameters}} 对 {{mean projections separate previous parameters}}，"
                "W^Q = W^K 仍相差 {{diff projections matched separate previous accuracy}} 个百分点：分数依然对称。",
            ),
        ),
        Claim(
            Bilingual(
                "Without projections, softmax(x xᵀ/√d) x, attention can express little.",
                "不用投影，softmax(x xᵀ/√d) x 的表达能力很弱。",
            ),
            "holds",
            Bilingual(
                "It reaches {{mean projections none previous accuracy}} % where separate matrices reach "
                "{{mean projections separate previous accuracy}} %, and {{mean projections none lookup accuracy}} % in lookup, "
                "where only the embeddings can learn to match.",
                "输出前一个符号时准确率为 {{mean projections none previous accuracy}} %，三个矩阵为 "
                "{{mean projections separate previous accuracy}} %；按键查找时为 {{mean projections none lookup accuracy}} %，"
                "此时只能靠词嵌入学会匹配。",
            ),
        ),
        Claim(
            Bilingual(
                "W^Q = W^K is harmless if queries and keys belong to different tokens.",
                "只要查询和被查的是不同的词元，W^Q = W^K 就没有坏处。",
            ),
            "wrong",
            Bilingual(
                "We predicted this for lookup, where the token that asks never has to be found itself, and found "
                "{{diff projections tied separate lookup accuracy}} points. A likely reason: the score of a token "
                "with itself competes. It gives itself {{mean projections tied lookup self_end}} % of its weight "
                "after training, with separate matrices {{mean projections separate lookup self_end}} %.",
                "这是我们对按键查找的预测：提问的词元本身从不需要被找到。结果却相差 "
                "{{diff projections tied separate lookup accuracy}} 个百分点。可能的原因：词元与自身的分数参与竞争。"
                "训练后它给自己 {{mean projections tied lookup self_end}} % 的权重，矩阵分开时为 "
                "{{mean projections separate lookup self_end}} %。",
            ),
        ),
    ),
)
