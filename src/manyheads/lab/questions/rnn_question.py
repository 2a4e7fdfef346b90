"""Why not a recurrent network?"""

from functools import partial

from manyheads.lab.distance_probes import far_gradient, step_seconds
from manyheads.lab.lab_tasks import Recall
from manyheads.lab.lstm import as_lstm
from manyheads.lab.question import ACCURACY, Answer, Arm, Claim, Comparison, Condition, Measure, Plot, Question, Source
from manyheads.lab.setup import Setup
from manyheads.lab.trial import make_model, train_model
from manyheads.language import Bilingual


def _trial(setup: Setup, seed: int) -> dict[str, float]:
    start = make_model(setup, seed)
    gradient = far_gradient(start, setup, seed)
    milliseconds = 1000 * step_seconds(start, setup, seed)
    trained = train_model(setup, seed)
    return {"accuracy": trained.test_scores()["accuracy"], "gradient": gradient, "milliseconds": milliseconds}


RNN = Question(
    id="rnn",
    title=Bilingual("Why not a recurrent network?", "为什么不用循环神经网络？"),
    method=Bilingual(
        "A causal Transformer of two layers, an LSTM, and an LSTM with attention over its earlier states have the "
        "same number of parameters within two percent. A sequence begins with three records, noise follows, and the "
        "last token asks for one of the records. The distance is the number of noise tokens. Gradients are those of "
        "the untrained model; times are CPU time on one core.",
        "两层的因果 Transformer、LSTM、带注意力的 LSTM，参数量相同（相差不超过百分之二）。每个序列开头是三条记录，"
        "接着是噪声，最后一个词元询问其中一条。距离就是噪声词元的个数。梯度在训练前测量；时间是单核 CPU 时间。",
    ),
    setup=Setup(
        model={"width": 32, "n_decoder_layers": 2, "feed_forward_width": 64, "n_heads": 4, "norm_placement": "pre"},
        n_rows=32,
        steps=300,
        warmup=30,
    ),
    full={"steps": 1500},
    arms=(
        Arm("transformer", Bilingual("Transformer", "Transformer")),
        Arm("lstm", Bilingual("LSTM", "LSTM"), {"alter": partial(as_lstm, has_attention=False)}),
        Arm(
            "lstm-attention",
            Bilingual("LSTM with attention", "带注意力的 LSTM"),
            {"alter": partial(as_lstm, has_attention=True)},
        ),
    ),
    conditions=tuple(
        Condition(
            str(distance),
            Bilingual(f"distance {distance}", f"距离 {distance}"),
            {"task": Recall(distance=distance)},
        )
        for distance in (4, 16, 64)
    ),
    measures=(
        ACCURACY,
        Measure(
            "gradient",
            Bilingual("gradient at the first token / at the last, untrained", "首个词元与末个词元的梯度之比（训练前）"),
            "higher",
            digits=6,
            is_logarithmic=True,
        ),
        Measure(
            "milliseconds",
            Bilingual("milliseconds of a training step on one core", "单核每步训练耗时（毫秒）"),
            "lower",
            digits=1,
            is_logarithmic=True,
        ),
    ),
    tuned_on="accuracy",
    learning_rates=(4e-3, 1.2e-2),
    n_tuning_seeds=1,
    measures_time=True,
    trial=_trial,
    comparisons=(
        Comparison(
            "lstm",
            "transformer",
            "gradient",
            "lower",
            condition="64",
            is_key=True,
            because=Bilingual("every step of the recurrence shrinks the gradient", "每循环一步，梯度都要缩小"),
        ),
        Comparison(
            "lstm",
            "transformer",
            "accuracy",
            "lower",
            condition="64",
            is_key=True,
            because=Bilingual("one state must carry all records past the noise", "一个状态要带着全部记录穿过噪声"),
        ),
        Comparison(
            "lstm",
            "lstm",
            "accuracy",
            "lower",
            condition="64",
            against_condition="4",
            because=Bilingual("what is carried longer is forgotten more", "带得越久，忘得越多"),
        ),
        Comparison(
            "lstm-attention",
            "lstm",
            "accuracy",
            "higher",
            condition="64",
            is_key=True,
            because=Bilingual("attention reaches back in one step", "注意力一步就能看到远处"),
        ),
        Comparison(
            "lstm-attention",
            "transformer",
            "accuracy",
            "same",
            condition="64",
            margin=0.05,
            because=Bilingual("both reach back in one step", "两者都能一步看到远处"),
        ),
        Comparison(
            "transformer",
            "transformer",
            "accuracy",
            "same",
            condition="64",
            against_condition="4",
            margin=0.05,
            because=Bilingual("all positions are equally near to attention", "对注意力来说，远近都一样"),
        ),
        Comparison(
            "transformer",
            "lstm",
            "milliseconds",
            "higher",
            condition="64",
            because=Bilingual("one core runs nothing in parallel; attention adds n²", "单核无法并行，注意力还多出 n²"),
        ),
    ),
    answer=Answer(
        yes=Bilingual(
            "A recurrent network has to carry what it has read through every step, while attention reaches back in "
            "one. At distance 64 the LSTM recalls {{mean rnn lstm 64 accuracy}} % (at distance 4, "
            "{{mean rnn lstm 4 accuracy}} %; by chance, one in eight), the Transformer "
            "{{mean rnn transformer 64 accuracy}} %, and the LSTM with attention "
            "{{mean rnn lstm-attention 64 accuracy}} %. On one core, where positions cannot run in parallel, a "
            "Transformer step takes {{mean rnn transformer 64 milliseconds}} ms, an LSTM step "
            "{{mean rnn lstm 64 milliseconds}} ms.",
            "循环网络必须把读到的内容一步步带下去，注意力一步就能看到远处。距离 64 时，LSTM 的准确率为 "
            "{{mean rnn lstm 64 accuracy}} %（距离 4 时为 {{mean rnn lstm 4 accuracy}} %；随机猜测为八分之一），"
            "Transformer 为 {{mean rnn transformer 64 accuracy}} %，带注意力的 LSTM 为 "
            "{{mean rnn lstm-attention 64 accuracy}} %。单核上各位置无法并行，Transformer 每步 "
            "{{mean rnn transformer 64 milliseconds}} 毫秒，LSTM 每步 {{mean rnn lstm 64 milliseconds}} 毫秒。",
        ),
        no=Bilingual(
            "Not all predictions held here. At distance 64 the LSTM recalls {{mean rnn lstm 64 accuracy}} %, the "
            "Transformer {{mean rnn transformer 64 accuracy}} %, and the LSTM with attention "
            "{{mean rnn lstm-attention 64 accuracy}} %.",
            "本次实验没有全部符合预测。距离 64 时，LSTM 为 {{mean rnn lstm 64 accuracy}} %，Transformer 为 "
            "{{mean rnn transformer 64 accuracy}} %，带注意力的 LSTM 为 {{mean rnn lstm-attention 64 accuracy}} %。",
        ),
    ),
    plots=(Plot("accuracy", "lines"), Plot("gradient", "lines"), Plot("milliseconds", "lines")),
    sources=(
        Source(
            "Vaswani et al. 2017, Table 1",
            Bilingual(
                "Between two positions, a signal passes O(1) operations in self-attention and O(n) in a recurrent layer; "
                "O(n) of the latter cannot run in parallel.",
                "两个位置之间，自注意力的路径长度为 O(1)，循环层为 O(n)；循环层还有 O(n) 次运算无法并行。",
            ),
        ),
        Source(
            "Bahdanau et al. 2015",
            Bilingual(
                "Added attention to a recurrent translator, so that it no longer has to squeeze a long sentence into one vector.",
                "给循环翻译模型加上注意力，长句不必再压缩成一个向量。",
            ),
        ),
    ),
    claims=(
        Claim(
            Bilingual(
                "RNNs and LSTMs fail at long distances, because gradients vanish.",
                "RNN、LSTM 因梯度消失，难以捕捉长距离依赖。",
            ),
            "half",
            Bilingual(
                "The gradient at the first token, as a share of that at the last, is {{mean rnn lstm 4 gradient}} at "
                "distance 4 and {{mean rnn lstm 64 gradient}} at 64; accuracy is {{mean rnn lstm 4 accuracy}} % and "
                "{{mean rnn lstm 64 accuracy}} %. But an LSTM with attention reaches "
                "{{mean rnn lstm-attention 64 accuracy}} %: attention helps a recurrent network, too.",
                "LSTM 首个词元的梯度与末个词元之比，在距离 4 时为 {{mean rnn lstm 4 gradient}}，距离 64 时为 "
                "{{mean rnn lstm 64 gradient}}；准确率分别为 {{mean rnn lstm 4 accuracy}} % 和 "
                "{{mean rnn lstm 64 accuracy}} %。但带注意力的 LSTM 有 {{mean rnn lstm-attention 64 accuracy}} %："
                "循环网络加上注意力同样有效。",
            ),
        ),
        Claim(
            Bilingual(
                "Distance does not matter to a Transformer: any two positions are one step apart.",
                "距离对 Transformer 没有影响：任意两个位置都只隔一步。",
            ),
            "half",
            Bilingual(
                "The path is short, but distance matters here: in the same number of steps the Transformer learns "
                "{{mean rnn transformer 4 accuracy}} % at distance 4 and {{mean rnn transformer 64 accuracy}} % at "
                "64. A likely reason: the record is harder to find among more tokens.",
                "路径确实短，但距离在这里仍有影响：同样的训练步数，距离 4 时 Transformer 为 "
                "{{mean rnn transformer 4 accuracy}} %，距离 64 时为 {{mean rnn transformer 64 accuracy}} %。"
                "可能的原因：词元越多，记录越难找。",
            ),
        ),
        Claim(
            Bilingual("A Transformer is faster than an RNN.", "Transformer 比 RNN 快。"),
            "half",
            Bilingual(
                "On hardware that computes all positions at once. On one CPU core a training step at distance 64 takes the "
                "Transformer {{ratio rnn transformer lstm 64 milliseconds}} times as long as an LSTM of the same size.",
                "前提是硬件能同时计算所有位置。在单个 CPU 核上，距离 64 时 Transformer 每步训练的耗时是同样大小 LSTM 的 "
                "{{ratio rnn transformer lstm 64 milliseconds}} 倍。",
            ),
        ),
    ),
)
