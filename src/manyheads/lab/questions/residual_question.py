"""Why residual connections, and where does the norm go?"""

from manyheads.lab.depth_probes import gradient_ratio, token_similarity
from manyheads.lab.lab_tasks import Lookup
from manyheads.lab.question import ACCURACY, Answer, Arm, Claim, Comparison, Condition, Measure, Plot, Question, Source
from manyheads.lab.setup import Setup
from manyheads.lab.trial import train_model
from manyheads.lab.variants import without_norm, without_residual
from manyheads.language import Bilingual

_pre = {"model.norm_placement": "pre"}
_post = {"model.norm_placement": "post"}


def _trial(setup: Setup, seed: int) -> dict[str, float]:
    return {
        "accuracy": train_model(setup, seed).test_scores()["accuracy"],
        "gradient": gradient_ratio(setup, seed),
        "similarity": token_similarity(setup, seed),
    }


def _depth(name: str, en: str, zh: str, n_layers: int, warmup: int) -> Condition:
    return Condition(name, Bilingual(en, zh), {"model.n_encoder_layers": n_layers, "warmup": warmup})


RESIDUAL = Question(
    id="residual",
    title=Bilingual(
        "Why residual connections, and should the norm come before or after?",
        "为什么要残差连接？归一化放前面还是后面？",
    ),
    method=Bilingual(
        "Encoders of 2, 6 and 12 layers (width 32) learn to look up one of four records by its key in 120 steps. The norm comes after "
        "each residual sum (2017), before each sublayer, or nowhere; residual connections are kept or removed. The "
        "learning rate warms up over a fifth of the steps, or not at all. Gradients and similarities are those of the untrained model.",
        "2、6、12 层的编码器（宽度 32）用 120 步学习按键查找，从四条记录中找出一条。归一化放在残差相加之后（2017 年的做法）、"
        "放在子层之前，或者完全去掉；残差连接保留或去掉。学习率用五分之一的步数预热，或者不预热。梯度和相似度在训练前测量。",
    ),
    setup=Setup(
        model={"width": 32, "feed_forward_width": 64, "n_heads": 4, "positions": "none"},
        task=Lookup(n_keys=8, n_values=8, n_records=(4, 4)),
        n_rows=32,
        steps=120,
    ),
    full={"steps": 600},
    arms=(
        Arm("post", Bilingual("post-norm", "Post-Norm"), _post),
        Arm("pre", Bilingual("pre-norm", "Pre-Norm"), _pre),
        Arm("no-norm", Bilingual("no norm", "无归一化"), {**_pre, "alter": without_norm}),
        Arm(
            "post-plain", Bilingual("post-norm, no residual", "Post-Norm，无残差"), {**_post, "alter": without_residual}
        ),
        Arm("pre-plain", Bilingual("pre-norm, no residual", "Pre-Norm，无残差"), {**_pre, "alter": without_residual}),
    ),
    conditions=(
        _depth("2", "2 layers", "2 层", 2, 24),
        _depth("6", "6 layers", "6 层", 6, 24),
        _depth("12", "12 layers", "12 层", 12, 24),
        _depth("12-cold", "12 layers, no warm-up", "12 层，不预热", 12, 1),
    ),
    skipped=(("no-norm", "12-cold"), ("post-plain", "12-cold"), ("pre-plain", "12-cold")),
    measures=(
        ACCURACY,
        Measure(
            "gradient",
            Bilingual("gradient of the first layer / last layer, untrained", "首层梯度与末层梯度之比（训练前）"),
            digits=3,
            is_logarithmic=True,
        ),
        Measure(
            "similarity",
            Bilingual("cosine between the outputs of different tokens, untrained", "不同词元输出之间的余弦（训练前）"),
            digits=2,
        ),
    ),
    tuned_on="accuracy",
    learning_rates=(5e-4, 1.5e-3, 6e-3),
    n_tuning_seeds=1,
    trial=_trial,
    comparisons=(
        Comparison(
            "pre-plain",
            "pre",
            "accuracy",
            "lower",
            condition="2",
            because=Bilingual("a query token loses itself in what it attends to", "词元自身的信息被注意力的平均冲掉"),
        ),
        Comparison(
            "pre-plain",
            "pre",
            "accuracy",
            "lower",
            condition="12",
            is_key=True,
            because=Bilingual("neither signal nor gradient passes twelve layers", "信号和梯度都过不了十二层"),
        ),
        Comparison(
            "post-plain",
            "post",
            "accuracy",
            "lower",
            condition="6",
            is_key=True,
            because=Bilingual("the same with the norm after the sum", "同上，归一化在后"),
        ),
        Comparison(
            "pre-plain",
            "pre",
            "similarity",
            "higher",
            condition="12",
            is_key=True,
            because=Bilingual("attention without residuals makes all tokens alike", "没有残差，注意力把词元磨成一样"),
        ),
        Comparison(
            "pre-plain",
            "pre",
            "gradient",
            "lower",
            condition="12",
            because=Bilingual("gradients shrink with every layer", "梯度逐层变小"),
        ),
        Comparison(
            "pre",
            "post",
            "accuracy",
            "same",
            condition="2",
            margin=0.05,
            because=Bilingual("a shallow stack trains either way", "层数少时两种都能训练"),
        ),
        Comparison(
            "pre",
            "post",
            "accuracy",
            "higher",
            condition="12",
            is_key=True,
            because=Bilingual("pre-norm leaves a clean path through all layers", "Pre-Norm 的残差通路上没有归一化"),
        ),
        Comparison(
            "pre",
            "post",
            "gradient",
            "higher",
            condition="12",
            because=Bilingual("each norm on the path rescales the gradient", "通路上的归一化会缩小梯度"),
        ),
        Comparison(
            "no-norm",
            "pre",
            "accuracy",
            "lower",
            condition="12",
            because=Bilingual("the sums grow from layer to layer", "残差流逐层变大"),
        ),
        Comparison(
            "post",
            "post",
            "accuracy",
            "lower",
            condition="12-cold",
            against_condition="12",
            because=Bilingual("large early updates upset a post-norm stack", "早期更新过大，Post-Norm 容易训坏"),
        ),
        Comparison(
            "pre",
            "pre",
            "accuracy",
            "same",
            condition="12-cold",
            against_condition="12",
            margin=0.05,
            because=Bilingual("pre-norm gradients are well-behaved from the start", "Pre-Norm 的梯度一开始就平稳"),
        ),
    ),
    answer=Answer(
        yes=Bilingual(
            "Without residual connections a deep stack hardly learned here; with them, pre-norm trained deeper "
            "stacks than post-norm. 12 layers of pre-norm reach {{mean residual pre 12 accuracy}} % with residual "
            "connections and {{mean residual pre-plain 12 accuracy}} % without, where untrained outputs of different "
            "tokens are nearly alike (cosine {{mean residual pre-plain 12 similarity}} instead of "
            "{{mean residual pre 12 similarity}}). Post-norm with residual connections reaches "
            "{{mean residual post 12 accuracy}} % with 12 layers; with 2 layers, pre-norm reaches "
            "{{mean residual pre 2 accuracy}} % and post-norm {{mean residual post 2 accuracy}} %.",
            "本次实验中，深层模型没有残差连接几乎学不到东西；有残差连接时，Pre-Norm 能训练得比 Post-Norm 更深。12 层 "
            "Pre-Norm 有残差为 {{mean residual pre 12 accuracy}} %，没有残差为 "
            "{{mean residual pre-plain 12 accuracy}} %，后者在训练前不同词元的输出几乎一样（余弦 "
            "{{mean residual pre-plain 12 similarity}}，有残差时 {{mean residual pre 12 similarity}}）。有残差的 "
            "Post-Norm 在 12 层时为 {{mean residual post 12 accuracy}} %；2 层时 Pre-Norm 为 "
            "{{mean residual pre 2 accuracy}} %，Post-Norm 为 {{mean residual post 2 accuracy}} %。",
        ),
        no=Bilingual(
            "Not all predictions held here. At 12 layers, pre-norm reaches {{mean residual pre 12 accuracy}} %, "
            "post-norm {{mean residual post 12 accuracy}} %, pre-norm without residual connections "
            "{{mean residual pre-plain 12 accuracy}} %.",
            "本次实验没有全部符合预测。12 层时 Pre-Norm 为 {{mean residual pre 12 accuracy}} %，Post-Norm 为 "
            "{{mean residual post 12 accuracy}} %，去掉残差的 Pre-Norm 为 {{mean residual pre-plain 12 accuracy}} %。",
        ),
    ),
    plots=(
        Plot("accuracy", "lines", conditions=("2", "6", "12")),
        Plot("similarity", "lines", conditions=("2", "6", "12")),
        Plot("gradient", "lines", conditions=("2", "6", "12")),
    ),
    sources=(
        Source(
            "Xiong et al. 2020",
            Bilingual(
                "Post-norm 35.50 and pre-norm 35.64 BLEU. Without warm-up, post-norm falls to 8.45; with it, about 34.",
                "Post-Norm 35.50 BLEU，Pre-Norm 35.64。不预热时 Post-Norm 只有 8.45，预热后约 34。",
            ),
        ),
        Source(
            "Dong et al. 2021",
            Bilingual(
                "Attention alone, without residual connections and feed-forward networks, converges to rank 1 doubly "
                "exponentially with depth.",
                "没有残差连接和前馈网络时，纯注意力的输出随层数以双指数速度退化为秩 1。",
            ),
        ),
    ),
    claims=(
        Claim(
            Bilingual("Residual connections keep tokens from becoming alike.", "残差连接能防止词元变得越来越像。"),
            "half",
            Bilingual(
                "In untrained stacks of 12 layers, the cosine between outputs of different tokens is "
                "{{mean residual pre-plain 12 similarity}} without them and {{mean residual pre 12 similarity}} with them in "
                "pre-norm, but {{mean residual post 12 similarity}} in post-norm, which has them as well.",
                "训练前的 12 层模型，不同词元输出之间的余弦：Pre-Norm 没有残差为 {{mean residual pre-plain 12 similarity}}，"
                "有残差为 {{mean residual pre 12 similarity}}；但 Post-Norm 有残差仍为 {{mean residual post 12 similarity}}。",
            ),
        ),
        Claim(
            Bilingual("Residual connections and layer norm speed up training.", "残差连接和层归一化能加快训练。"),
            "half",
            Bilingual(
                "With 12 layers and 120 steps they decide whether the model learns at all: "
                "{{mean residual pre 12 accuracy}} % with both, {{mean residual pre-plain 12 accuracy}} % without "
                "residual connections, {{mean residual no-norm 12 accuracy}} % without norm. With 2 layers the model "
                "learns without a norm, too, and better: {{mean residual no-norm 2 accuracy}} %, compared with "
                "{{mean residual pre 2 accuracy}} %.",
                "12 层、训练 120 步时，它们决定的是学不学得会：两者都有为 {{mean residual pre 12 accuracy}} %，"
                "没有残差连接为 {{mean residual pre-plain 12 accuracy}} %，没有归一化为 "
                "{{mean residual no-norm 12 accuracy}} %。只有 2 层时，没有归一化也学得会，而且更好："
                "{{mean residual no-norm 2 accuracy}} %，有归一化为 {{mean residual pre 2 accuracy}} %。",
            ),
        ),
    ),
)
