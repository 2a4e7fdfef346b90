"""Why divide by √d_k?"""

from functools import partial

from manyheads.lab.lab_tasks import Lookup
from manyheads.lab.probes import attention_statistics
from manyheads.lab.question import ACCURACY, Answer, Arm, Claim, Comparison, Condition, Measure, Plot, Question, Source
from manyheads.lab.setup import Setup
from manyheads.lab.trial import make_model, train_model
from manyheads.lab.variants import with_score_scale
from manyheads.language import Bilingual

_TARGET = 1.0  # nats: below this, most lookups succeed


def _trial(setup: Setup, seed: int) -> dict[str, float]:
    start = attention_statistics(make_model(setup, seed), setup, seed)
    trained = train_model(setup, seed)
    return {
        "accuracy": trained.test_scores()["accuracy"],
        "steps": trained.steps_to(_TARGET),
        "variance": start.score_variance,
        "entropy": start.entropy,
        "median_gradient": start.median_gradient,
        "tail_gradient": start.tail_gradient,
    }


def _arm(name: str, en: str, zh: str, power: float) -> Arm:
    return Arm(name, Bilingual(en, zh), {"alter": partial(with_score_scale, power=power)})


SCALE = Question(
    id="scale",
    title=Bilingual("Why divide by √d_k?", "为什么要除以 √d_k？"),
    method=Bilingual(
        "One attention layer with one head learns to look up a record by its key among eight. The scores q·k are left "
        "as they are, divided by √d_k, or divided by d_k. Variance, entropy and gradients are those of the untrained "
        "model; accuracy is measured after training.",
        "单层单头注意力学习按键查找：在八条记录中找到指定的一条。分数 q·k 分三种处理：不缩放、除以 √d_k、除以 d_k。"
        "方差、熵和梯度在训练前测量，准确率在训练后测量。",
    ),
    setup=Setup(
        model={"width": 64, "n_encoder_layers": 1, "feed_forward_width": 128, "n_heads": 1, "norm_placement": "pre"},
        task=Lookup(),
        steps=300,
    ),
    full={"steps": 2000},
    arms=(
        _arm("none", "not scaled", "不缩放", 0.0),
        _arm("sqrt", "divided by √d_k", "除以 √d_k", 0.5),
        _arm("linear", "divided by d_k", "除以 d_k", 1.0),
    ),
    conditions=tuple(
        Condition(
            str(width),
            Bilingual(f"d_k = {width}", f"d_k = {width}"),
            {"model.head_width": width, "model.value_width": 64},
        )
        for width in (8, 64, 512)
    ),
    measures=(
        ACCURACY,
        Measure(
            "steps",
            Bilingual("steps to a loss of 1 nat", "损失降到 1 nat 所需步数"),
            "lower",
            digits=0,
            is_censored=True,
        ),
        Measure(
            "variance",
            Bilingual("variance of the scores before training", "训练前分数的方差"),
            digits=2,
            is_logarithmic=True,
        ),
        Measure(
            "entropy",
            Bilingual(
                "entropy of the weights before training, % of the highest", "训练前注意力权重的熵（占最大值的 %）"
            ),
            is_percentage=True,
        ),
        Measure(
            "median_gradient",
            Bilingual("median gradient of the scores", "分数梯度的中位数"),
            digits=6,
            is_logarithmic=True,
        ),
        Measure(
            "tail_gradient",
            Bilingual("99th percentile of the gradients of the scores", "分数梯度的第 99 百分位数"),
            digits=4,
            is_logarithmic=True,
        ),
    ),
    tuned_on="accuracy",
    learning_rates=(1e-3, 3e-3, 1e-2, 3e-2),
    trial=_trial,
    comparisons=(
        Comparison(
            "none",
            "sqrt",
            "entropy",
            "lower",
            condition="512",
            because=Bilingual("large scores saturate the softmax", "分数过大，softmax 饱和"),
        ),
        Comparison(
            "none",
            "sqrt",
            "median_gradient",
            "lower",
            condition="512",
            because=Bilingual("a saturated softmax passes on almost no gradient", "softmax 饱和后几乎不传梯度"),
        ),
        Comparison(
            "none",
            "sqrt",
            "tail_gradient",
            "higher",
            condition="512",
            because=Bilingual("the few queries that are undecided get large gradients", "少数未饱和的查询梯度反而更大"),
        ),
        Comparison(
            "none",
            "sqrt",
            "accuracy",
            "lower",
            condition="512",
            is_key=True,
            because=Bilingual("attention that starts saturated learns slowly", "一开始就饱和的注意力学得慢"),
        ),
        Comparison(
            "none",
            "sqrt",
            "accuracy",
            "lower",
            condition="64",
            is_key=True,
            because=Bilingual("the same, at the width of the paper", "同上，论文所用的宽度"),
        ),
        Comparison(
            "none",
            "sqrt",
            "accuracy",
            "same",
            condition="8",
            margin=0.03,
            because=Bilingual("√8 is small, so that scaling should hardly matter", "√8 很小，缩放与否应当差别不大"),
        ),
        Comparison(
            "linear",
            "sqrt",
            "accuracy",
            "lower",
            condition="512",
            because=Bilingual("scores that are too small give nearly uniform weights", "分数过小，权重接近均匀"),
        ),
    ),
    answer=Answer(
        yes=Bilingual(
            "Unscaled scores saturate the softmax, and the layer then learns less in the same time. At d_k = 512, "
            "the entropy of the attention weights starts at {{mean scale none 512 entropy}} % of the highest instead "
            "of {{mean scale sqrt 512 entropy}} %, and accuracy reaches {{mean scale none 512 accuracy}} % instead "
            "of {{mean scale sqrt 512 accuracy}} %. Even at d_k = 8, accuracy without scaling differs by "
            "{{diff scale none sqrt 8 accuracy}} points. Division by d_k instead of √d_k changes it by "
            "{{diff scale linear sqrt 512 accuracy}} points at d_k = 512.",
            "不缩放的分数会使 softmax 饱和，同样的训练步数学到的更少。d_k = 512 时，注意力权重的熵一开始只有最大值的 "
            "{{mean scale none 512 entropy}} %（除以 √d_k 为 {{mean scale sqrt 512 entropy}} %），训练后准确率 "
            "{{mean scale none 512 accuracy}} %（除以 √d_k 为 {{mean scale sqrt 512 accuracy}} %）。即使 d_k = 8，"
            "不缩放的准确率也相差 {{diff scale none sqrt 8 accuracy}} 个百分点。d_k = 512 时若改为除以 d_k，"
            "准确率变化 {{diff scale linear sqrt 512 accuracy}} 个百分点。",
        ),
        no=Bilingual(
            "Here scaling did not clearly help at every width. Without it, accuracy differs by "
            "{{diff scale none sqrt 64 accuracy}} points at d_k = 64 and by {{diff scale none sqrt 512 accuracy}} at "
            "d_k = 512.",
            "本次实验中，缩放并非在每种宽度下都有明显好处。不缩放时，d_k = 64 的准确率相差 "
            "{{diff scale none sqrt 64 accuracy}} 个百分点，d_k = 512 相差 {{diff scale none sqrt 512 accuracy}} "
            "个百分点。",
        ),
    ),
    plots=(Plot("accuracy"), Plot("variance", "lines"), Plot("median_gradient", "lines")),
    sources=(
        Source(
            "Vaswani et al. 2017, section 3.2.1",
            Bilingual(
                "Gives the reason (variance d_k, saturated softmax) but no ablation; we found none published.",
                "给出了理由（方差为 d_k，softmax 饱和），没有消融实验；我们也没有找到公开发表的数据。",
            ),
        ),
        Source(
            "Yang et al. 2022 (μP), Definition 4.1",
            Bilingual(
                "Divides by d_k, not √d_k, so that tuned learning rates carry over to wider models.",
                "除以 d_k 而不是 √d_k，使调好的学习率可以直接用于更宽的模型。",
            ),
        ),
    ),
    claims=(
        Claim(
            Bilingual("The variance of q·k is d_k.", "q·k 的方差等于 d_k。"),
            "half",
            Bilingual(
                "Only if all components of q and k are independent and have mean 0 and variance 1. With Glorot "
                "initialization of a layer of width 64 the variance is {{mean scale none 8 variance}} at d_k = 8, "
                "{{mean scale none 64 variance}} at 64 and {{mean scale none 512 variance}} at 512. Dividing by √d_k "
                "divides it by d_k in every case.",
                "只有当 q、k 的各分量相互独立、均值为 0、方差为 1 时才成立。宽度 64、Glorot 初始化时，d_k = 8、64、"
                "512 的方差分别是 {{mean scale none 8 variance}}、{{mean scale none 64 variance}}、"
                "{{mean scale none 512 variance}}。但除以 √d_k 总会使方差变为原来的 1/d_k。",
            ),
        ),
        Claim(
            Bilingual("Without √d_k the gradients vanish.", "不除以 √d_k，梯度就会消失。"),
            "half",
            Bilingual(
                "The median gradient shrinks ({{diff scale none sqrt 512 median_gradient}}), but the 99th percentile "
                "changes by {{diff scale none sqrt 512 tail_gradient}}: look at medians and tails, not at means.",
                "中位数确实变小（{{diff scale none sqrt 512 median_gradient}}），但第 99 百分位数变为 "
                "{{diff scale none sqrt 512 tail_gradient}}：要看中位数和尾部，不能看平均值。",
            ),
        ),
    ),
)
