"""What is the feed-forward network for?"""

from manyheads.lab.lab_tasks import Facts, Lookup
from manyheads.lab.question import ACCURACY, Answer, Arm, Claim, Comparison, Condition, Measure, Plot, Question, Source
from manyheads.lab.setup import Setup
from manyheads.lab.trial import make_model, train_model
from manyheads.lab.variants import without_feed_forward
from manyheads.language import Bilingual

_WIDTH = 32


def _trial(setup: Setup, seed: int) -> dict[str, float]:
    n_parameters = sum(one.numel() for one in make_model(setup, seed).parameters())
    return {**train_model(setup, seed).test_scores(), "parameters": n_parameters}


def _arm(name: str, en: str, zh: str, activation: str, width: int) -> Arm:
    changes = {"model.activation": activation, "model.feed_forward_width": width}
    return Arm(name, Bilingual(en, zh), changes)


FFN = Question(
    id="ffn",
    title=Bilingual("What is the feed-forward network for?", "前馈网络有什么用？"),
    method=Bilingual(
        "One encoder layer of width 32 learns two tasks: to know by heart 2,048 random facts (subject and relation "
        "give an object), and to look up a record of the sequence. The feed-forward network is removed, narrowed, or "
        "gets another activation. SwiGLU has three matrices and therefore two thirds of the hidden width. Three "
        "layers of attention only have about as many parameters as one layer with ReLU × 4.",
        "一层编码器（宽度 32）学两个任务：背下 2048 条随机事实（由主语和关系得出宾语），以及查找序列中已有的记录。"
        "前馈网络或去掉，或变窄，或更换激活函数。SwiGLU 有三个矩阵，因此隐层宽度取三分之二。三层纯注意力与一层 ReLU "
        "×4 的参数量几乎相同。",
    ),
    setup=Setup(
        model={
            "width": _WIDTH,
            "n_encoder_layers": 1,
            "feed_forward_width": 4 * _WIDTH,
            "n_heads": 4,
            "norm_placement": "pre",
            "positions": "none",
        },
        task=Facts(64, 32, 64),
        n_rows=128,
        steps=300,
        warmup=30,
    ),
    full={"steps": 1500},
    arms=(
        Arm("none", Bilingual("none", "无前馈网络"), {"alter": without_feed_forward}),
        Arm(
            "attention-only",
            Bilingual("none, three layers", "无前馈网络，三层"),
            {"alter": without_feed_forward, "model.n_encoder_layers": 3},
        ),
        _arm("relu-1", "ReLU, width × 1", "ReLU，宽度 ×1", "relu", _WIDTH),
        _arm("relu-2", "ReLU, width × 2", "ReLU，宽度 ×2", "relu", 2 * _WIDTH),
        _arm("relu-4", "ReLU, width × 4", "ReLU，宽度 ×4", "relu", 4 * _WIDTH),
        _arm("gelu-4", "GELU, width × 4", "GELU，宽度 ×4", "gelu", 4 * _WIDTH),
        _arm("swiglu", "SwiGLU, width × 8/3", "SwiGLU，宽度 ×8/3", "swiglu", 8 * _WIDTH // 3),
    ),
    conditions=(
        Condition("facts", Bilingual("facts by heart", "背诵事实")),
        Condition(
            "lookup",
            Bilingual(
                "lookup in the sequence",
                "序列内查找",
            ),
            {"task": Lookup(n_keys=12, n_values=8, n_records=(6, 6)), "n_rows": 64, "steps": 120, "warmup": 12},
        ),
    ),
    measures=(
        ACCURACY,
        Measure("loss", Bilingual("loss, nats", "损失 (nat)"), "lower", digits=2),
        Measure("parameters", Bilingual("parameters", "参数量"), digits=0),
    ),
    tuned_on="accuracy",
    learning_rates=(7e-3, 2e-2, 5e-2),
    n_tuning_seeds=1,
    trial=_trial,
    comparisons=(
        Comparison(
            "none",
            "relu-4",
            "accuracy",
            "lower",
            condition="facts",
            is_key=True,
            because=Bilingual("facts are stored in the feed-forward network", "事实存放在前馈网络里"),
        ),
        Comparison(
            "relu-1",
            "relu-4",
            "accuracy",
            "lower",
            condition="facts",
            is_key=True,
            because=Bilingual("a wider network stores more", "越宽存得越多"),
        ),
        Comparison(
            "relu-2",
            "relu-4",
            "accuracy",
            "lower",
            condition="facts",
            because=Bilingual("a wider network stores more", "越宽存得越多"),
        ),
        Comparison(
            "attention-only",
            "relu-4",
            "accuracy",
            "lower",
            condition="facts",
            because=Bilingual(
                "attention mixes tokens but computes little on them", "注意力只混合词元，少有逐词元的计算"
            ),
        ),
        Comparison(
            "none",
            "relu-4",
            "accuracy",
            "same",
            condition="lookup",
            margin=0.05,
            is_key=True,
            because=Bilingual("moving what is there needs attention only", "搬运已有的信息只需注意力"),
        ),
        Comparison(
            "gelu-4",
            "relu-4",
            "accuracy",
            "same",
            condition="facts",
            margin=0.05,
            because=Bilingual("both are ramps; only the corner differs", "两者形状相近，只差拐角"),
        ),
        Comparison(
            "swiglu",
            "relu-4",
            "accuracy",
            "higher",
            condition="facts",
            because=Bilingual("gates multiply features at the same parameter count", "同样的参数量，门控可以做乘法"),
        ),
    ),
    answer=Answer(
        yes=Bilingual(
            "It helps one layer to learn facts by heart, while lookup in the sequence hardly needs it. Without it, "
            "the layer learns {{mean ffn none facts accuracy}} % of the facts instead of "
            "{{mean ffn relu-4 facts accuracy}} %, and {{mean ffn relu-1 facts accuracy}} % with a quarter of its "
            "width; lookup changes by {{diff ffn none relu-4 lookup accuracy}} points. Three layers of attention "
            "with the same number of parameters learn {{mean ffn attention-only facts accuracy}} % of the facts.",
            "它帮助单层模型记住事实，而查找序列中已有的内容几乎不需要它。去掉它只能记住 "
            "{{mean ffn none facts accuracy}} % 的事实（有前馈网络为 {{mean ffn relu-4 facts accuracy}} %，"
            "宽度减到四分之一为 {{mean ffn relu-1 facts accuracy}} %），序列内查找则变化 "
            "{{diff ffn none relu-4 lookup accuracy}} 个百分点。参数量相同的三层纯注意力记住 "
            "{{mean ffn attention-only facts accuracy}} %。",
        ),
        no=Bilingual(
            "Not all predictions held here. Of the facts, one layer learns {{mean ffn relu-4 facts accuracy}} % with "
            "the feed-forward network, {{mean ffn none facts accuracy}} % without, and three layers of attention "
            "with as many parameters {{mean ffn attention-only facts accuracy}} %. Lookup: "
            "{{mean ffn relu-4 lookup accuracy}} % with it, {{mean ffn none lookup accuracy}} % without.",
            "本次实验没有全部符合预测。背诵事实：有前馈网络 {{mean ffn relu-4 facts accuracy}} %，没有 "
            "{{mean ffn none facts accuracy}} %，参数量相同的三层纯注意力 {{mean ffn attention-only facts accuracy}} "
            "%。序列内查找：有 {{mean ffn relu-4 lookup accuracy}} %，没有 {{mean ffn none lookup accuracy}} %。",
        ),
    ),
    plots=(Plot("accuracy"), Plot("loss")),
    sources=(
        Source(
            "Geva et al. 2021",
            Bilingual(
                "Feed-forward layers act as key–value memories: hidden units respond to patterns, output vectors to what follows.",
                "前馈层相当于键值记忆：隐层单元对应输入模式，输出向量对应接下来的词。",
            ),
        ),
        Source(
            "Shazeer 2020",
            Bilingual(
                "Gated variants such as SwiGLU give lower perplexity than ReLU and GELU at two thirds of the hidden width.",
                "SwiGLU 等门控变体在隐层宽度为三分之二时，困惑度低于 ReLU 和 GELU。",
            ),
        ),
    ),
    claims=(
        Claim(
            Bilingual(
                "Facts live in the feed-forward network; attention cannot hold them.",
                "知识都存在前馈网络里，注意力存不了。",
            ),
            "half",
            Bilingual(
                "With one layer, removing it changes the accuracy of facts by "
                "{{diff ffn none relu-4 facts accuracy}} points, of lookup by "
                "{{diff ffn none relu-4 lookup accuracy}}. But three layers of attention with as many parameters "
                "learn {{mean ffn attention-only facts accuracy}} % of the facts, one layer with the network "
                "{{mean ffn relu-4 facts accuracy}} %.",
                "只有一层时，去掉它使背诵的准确率变化 {{diff ffn none relu-4 facts accuracy}} 个百分点，"
                "序列内查找变化 {{diff ffn none relu-4 lookup accuracy}}。但参数量相同的三层纯注意力也能记住 "
                "{{mean ffn attention-only facts accuracy}} % 的事实，一层加前馈网络为 "
                "{{mean ffn relu-4 facts accuracy}} %。",
            ),
        ),
        Claim(
            Bilingual("The choice of the activation hardly matters.", "激活函数选哪个都差不多。"),
            "half",
            Bilingual(
                "GELU instead of ReLU: {{diff ffn gelu-4 relu-4 facts accuracy}} points. SwiGLU, with the same number of "
                "parameters: {{diff ffn swiglu relu-4 facts accuracy}} points.",
                "GELU 换 ReLU：{{diff ffn gelu-4 relu-4 facts accuracy}} 个百分点。参数量相同的 SwiGLU："
                "{{diff ffn swiglu relu-4 facts accuracy}} 个百分点。",
            ),
        ),
    ),
)
