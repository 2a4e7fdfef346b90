"""How wide should a head be?"""

from manyheads.lab.lab_tasks import Lookup
from manyheads.lab.question import ACCURACY, Answer, Arm, Claim, Comparison, Measure, Plot, Question, Source
from manyheads.lab.setup import Setup
from manyheads.lab.trial import count_parameters, train_model
from manyheads.language import Bilingual


def _trial(setup: Setup, seed: int) -> dict[str, float]:
    trained = train_model(setup, seed)
    return {"accuracy": trained.test_scores()["accuracy"], "parameters": count_parameters(trained.model)}


HEAD_WIDTH = Question(
    id="head-width",
    title=Bilingual("How wide should the queries and keys of a head be?", "每个头的 d_k 应该取多大？"),
    method=Bilingual(
        "One attention layer with four heads looks up one of eight records by its key; there are 32 keys. Only d_k, the width of "
        "queries and keys, differs; values stay 16 wide. One arm with d_k = 1 has a feed-forward network that is larger "
        "by the parameters that d_k = 16 has more.",
        "单层四头注意力在八条记录中按键查找一条，键共有 32 种。只改变查询和键的宽度 d_k，值的宽度固定为 16。"
        "另有一组 d_k = 1，把相对 d_k = 16 少掉的参数加到前馈网络中。",
    ),
    setup=Setup(
        model={
            "width": 64,
            "n_encoder_layers": 1,
            "feed_forward_width": 128,
            "n_heads": 4,
            "value_width": 16,
            "norm_placement": "pre",
        },
        task=Lookup(n_keys=32, n_values=8),
        steps=200,
    ),
    full={"steps": 2000},
    arms=(
        *(
            Arm(str(width), Bilingual(f"d_k = {width}", f"d_k = {width}"), {"model.head_width": width})
            for width in (1, 2, 4, 8, 16, 32)
        ),
        Arm(
            "matched",
            Bilingual("d_k = 1, larger feed-forward", "d_k = 1，前馈网络更大"),
            {"model.head_width": 1, "model.feed_forward_width": 188},
        ),
    ),
    measures=(
        ACCURACY,
        Measure("parameters", Bilingual("parameters", "参数量"), digits=0),
    ),
    tuned_on="accuracy",
    learning_rates=(3e-3, 1e-2),
    n_tuning_seeds=1,
    trial=_trial,
    comparisons=(
        Comparison(
            "1",
            "16",
            "accuracy",
            "lower",
            is_key=True,
            because=Bilingual(
                "on a line, only the two outermost keys can win", "在一条线上，只有两端的键能取得最大分数"
            ),
        ),
        Comparison(
            "matched",
            "16",
            "accuracy",
            "lower",
            is_key=True,
            because=Bilingual("parameters elsewhere do not widen the comparison", "别处的参数不能让比较更精细"),
        ),
        Comparison(
            "4",
            "16",
            "accuracy",
            "lower",
            because=Bilingual("32 keys crowd together in four dimensions", "32 种键挤在四维空间里"),
        ),
        Comparison(
            "32",
            "16",
            "accuracy",
            "same",
            margin=0.05,
            because=Bilingual("wide enough is enough", "够宽之后再宽也没有用"),
        ),
    ),
    answer=Answer(
        yes=Bilingual(
            "Wide enough to tell the keys apart. With 32 keys and d_k = 1, 2, 4, 8, 16 and 32, accuracy is "
            "{{mean head-width 1 - accuracy}}, {{mean head-width 2 - accuracy}}, {{mean head-width 4 - accuracy}}, "
            "{{mean head-width 8 - accuracy}}, {{mean head-width 16 - accuracy}} and "
            "{{mean head-width 32 - accuracy}} %. Parameters elsewhere do not make up for narrow heads: with d_k = 1 "
            "and a larger feed-forward network, accuracy is {{mean head-width matched - accuracy}} %.",
            "宽到足以区分各个键即可。键有 32 种时，d_k 取 1、2、4、8、16、32，准确率依次为 "
            "{{mean head-width 1 - accuracy}} %、{{mean head-width 2 - accuracy}} %、"
            "{{mean head-width 4 - accuracy}} %、{{mean head-width 8 - accuracy}} %、"
            "{{mean head-width 16 - accuracy}} %、{{mean head-width 32 - accuracy}} %。别处的参数弥补不了：d_k = 1 "
            "而加大前馈网络，只有 {{mean head-width matched - accuracy}} %。",
        ),
        no=Bilingual(
            "Here narrow heads were not clearly worse in every case. d_k = 1 differs from 16 by "
            "{{diff head-width 1 16 - accuracy}} points, and by {{diff head-width matched 16 - accuracy}} with "
            "equally many parameters.",
            "本次实验中，窄的头并非总是明显更差。d_k = 1 与 16 相差 {{diff head-width 1 16 - accuracy}} 个百分点，"
            "参数补足后相差 {{diff head-width matched 16 - accuracy}} 个百分点。",
        ),
    ),
    plots=(Plot("accuracy"),),
    sources=(
        Source(
            "Vaswani et al. 2017, Table 3",
            Bilingual(
                "d_k = 16 instead of 64 lowers BLEU from 25.8 to 25.1.",
                "d_k 从 64 减到 16，BLEU 从 25.8 降到 25.1。",
            ),
        ),
        Source(
            "Bhojanapalli et al. 2020",
            Bilingual(
                "Heads that are narrower than the sequence is long cannot express all attention weights; proposes to choose "
                "d_k by the length of the sequence, not by the number of heads.",
                "头的宽度小于序列长度时，无法表示任意的注意力权重；建议按序列长度而不是按头数来定 d_k。",
            ),
        ),
    ),
    claims=(
        Claim(
            Bilingual("d_k has to be d_model / h.", "d_k 必须等于 d_model / h。"),
            "wrong",
            Bilingual(
                "That is a convention. Here d_model / h is 16; d_k = 8 differs from it by "
                "{{diff head-width 8 16 - accuracy}} points and d_k = 32 by {{diff head-width 32 16 - accuracy}}.",
                "这只是惯例。这里 d_model / h 是 16；与之相比，d_k = 8 相差 {{diff head-width 8 16 - accuracy}} 个百分点，"
                "d_k = 32 相差 {{diff head-width 32 16 - accuracy}} 个百分点。",
            ),
        ),
    ),
)
