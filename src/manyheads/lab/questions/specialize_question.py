"""Do heads specialize?"""

from manyheads.lab.head_roles import head_differences
from manyheads.lab.lab_tasks import Text
from manyheads.lab.question import ACCURACY, Answer, Arm, Claim, Comparison, Measure, Plot, Question, Source
from manyheads.lab.setup import Setup
from manyheads.lab.trial import train_model, untrained
from manyheads.language import Bilingual


def _trial(setup: Setup, seed: int) -> dict[str, float]:
    trained = train_model(setup, seed) if setup.extra["is_trained"] else untrained(setup, seed)
    found = head_differences(trained)
    first, last = found.distances[0], found.distances[-1]
    return {
        "divergence": found.divergence,
        "entropy": found.entropy,
        "distance": found.distance,
        "distance_range": found.distance_range,
        "first_layer": sum(first) / len(first),
        "last_layer": sum(last) / len(last),
        "accuracy": trained.test_scores()["accuracy"],
    }


SPECIALIZE = Question(
    id="specialize",
    title=Bilingual("Do heads learn different things?", "不同的头真的学到不同的东西吗？"),
    method=Bilingual(
        "Two layers with four heads each learn to fill in masked words of short English sentences. Their attention weights "
        "on held-out sentences are compared with those of the same model before training. The learning rate is fixed.",
        "两层、每层四个头的编码器学习填补英文短句中被遮盖的词。在留出的句子上，比较同一模型训练前后的注意力权重。学习率固定。",
    ),
    setup=Setup(
        model={"width": 64, "n_encoder_layers": 2, "feed_forward_width": 128, "n_heads": 4, "norm_placement": "pre"},
        task=Text("masked"),
        steps=800,
        n_rows=32,
        learning_rate=3e-3,
        extra={"is_trained": True},
    ),
    full={"steps": 5000},
    arms=(
        Arm("trained", Bilingual("trained", "训练后")),
        Arm("random", Bilingual("before training", "训练前"), {"extra.is_trained": False}),
    ),
    measures=(
        Measure(
            "divergence",
            Bilingual("Jensen–Shannon divergence between heads, bits", "头与头之间的 JS 散度 (bit)"),
        ),
        Measure(
            "entropy",
            Bilingual("entropy of the weights, % of the highest", "注意力权重的熵（占最大值的 %）"),
            is_percentage=True,
        ),
        Measure("distance", Bilingual("mean attention distance, tokens", "平均注意力距离（词元）"), digits=2),
        Measure(
            "distance_range",
            Bilingual("distance of the farthest minus the nearest head, tokens", "最远与最近的头的距离之差（词元）"),
            digits=2,
        ),
        Measure("first_layer", Bilingual("mean distance in layer 1, tokens", "第 1 层的平均距离（词元）"), digits=2),
        Measure("last_layer", Bilingual("mean distance in layer 2, tokens", "第 2 层的平均距离（词元）"), digits=2),
        ACCURACY,
    ),
    trial=_trial,
    comparisons=(
        Comparison(
            "trained",
            "random",
            "divergence",
            "higher",
            is_key=True,
            because=Bilingual(
                "heads that attend to other tokens add information",
                "看不同地方的头才能带来新信息",
            ),
        ),
        Comparison(
            "trained",
            "random",
            "distance_range",
            "higher",
            is_key=True,
            because=Bilingual("some heads become local, others do not", "有的头变得只看近处，有的不会"),
        ),
        Comparison(
            "trained",
            "random",
            "entropy",
            "lower",
            because=Bilingual("training makes heads selective", "训练使注意力更集中"),
        ),
        Comparison(
            "trained",
            "random",
            "distance",
            "lower",
            because=Bilingual("near words predict a masked word best", "邻近的词最有助于预测被遮盖的词"),
        ),
    ),
    answer=Answer(
        yes=Bilingual(
            "Yes, training moves the heads apart. The divergence between two heads of a layer goes from "
            "{{mean specialize random - divergence}} to {{mean specialize trained - divergence}} bits, and the gap "
            "in mean distance between the farthest and the nearest head from "
            "{{mean specialize random - distance_range}} to {{mean specialize trained - distance_range}} tokens.",
            "是的，训练使各头分化。同层两个头之间的 JS 散度从 {{mean specialize random - divergence}} bit 变为 "
            "{{mean specialize trained - divergence}} bit，最远与最近的头的平均距离之差从 "
            "{{mean specialize random - distance_range}} 个词元变为 {{mean specialize trained - distance_range}} 个。",
        ),
        no=Bilingual(
            "Not clearly here. By training, the divergence between two heads of a layer changes by "
            "{{diff specialize trained random - divergence}} bits, and the gap between the farthest and the nearest head by "
            "{{diff specialize trained random - distance_range}} tokens.",
            "本次实验中并不明显。训练使同层两个头之间的 JS 散度变化 {{diff specialize trained random - divergence}} bit，"
            "最远与最近的头的距离之差变化 {{diff specialize trained random - distance_range}} 个词元。",
        ),
    ),
    plots=(Plot("divergence"), Plot("entropy"), Plot("distance_range")),
    sources=(
        Source(
            "Clark et al. 2019",
            Bilingual(
                "A head of BERT finds the direct object of a verb in 86.8 % of cases, the best fixed offset in 40.0 %; heads of "
                "the same layer often behave alike.",
                "BERT 的一个头找到动词直接宾语的准确率为 86.8 %，最好的固定偏移只有 40.0 %；同一层的头往往相似。",
            ),
        ),
        Source(
            "Voita et al. 2019",
            Bilingual(
                "38 of 48 encoder heads can be pruned for 0.15 BLEU: few heads specialize, and they do most of the work.",
                "编码器 48 个头剪去 38 个，BLEU 只下降 0.15：真正分工的头不多，却承担了大部分工作。",
            ),
        ),
    ),
    claims=(
        Claim(
            Bilingual(
                "Some heads attend to neighbors, others to the whole sentence.",
                "有的头关注局部，有的头关注全局。",
            ),
            "half",
            Bilingual(
                "Heads do differ in distance: the gap in mean distance between the farthest and the nearest head is "
                "{{mean specialize trained - distance_range}} tokens after training and "
                "{{mean specialize random - distance_range}} before it. This does not show that a head attends to "
                "the whole sentence.",
                "各头看的远近确实不同：最远与最近的头的平均距离之差，训练后为 "
                "{{mean specialize trained - distance_range}} 个词元，训练前为 "
                "{{mean specialize random - distance_range}} 个。但这并不能说明有的头关注全局。",
            ),
        ),
        Claim(
            Bilingual("Heads differ because they are trained to.", "头与头的差异全是训练出来的。"),
            "half",
            Bilingual(
                "Random heads differ, too: {{mean specialize random - divergence}} bits before training, "
                "{{mean specialize trained - divergence}} after it. Compare with an untrained model before you explain a head.",
                "随机初始化的头也互不相同：训练前 {{mean specialize random - divergence}} bit，训练后 "
                "{{mean specialize trained - divergence}} bit。解释某个头之前，先与未训练的模型比较。",
            ),
        ),
        Claim(
            Bilingual("Low layers look near, high layers look far.", "低层看局部，高层看全局。"),
            "half",
            Bilingual(
                "A model of two layers does not show it. After training, the mean distance is {{mean specialize trained - first_layer}} tokens in layer 1 and "
                "{{mean specialize trained - last_layer}} in layer 2; before, {{mean specialize random - first_layer}} and "
                "{{mean specialize random - last_layer}}.",
                "两层的模型看不出这一点。训练后第 1 层的平均距离为 {{mean specialize trained - first_layer}} 个词元，第 2 层为 "
                "{{mean specialize trained - last_layer}} 个；训练前分别为 {{mean specialize random - first_layer}} 和 "
                "{{mean specialize random - last_layer}}。",
            ),
        ),
    ),
)
