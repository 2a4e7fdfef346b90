"""Why does a Transformer need positions, and which kind?"""

from dataclasses import replace

from manyheads.lab.lab_tasks import Reorder, Text
from manyheads.lab.question import (
    ACCURACY,
    LOSS,
    Answer,
    Arm,
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

_N_ROWS = 256
_N_LONGER_ROWS = 128


def _trial(setup: Setup, seed: int) -> dict[str, float]:
    trained = train_model(setup, seed)
    on_longer = replace(trained, setup=replace(setup, test_task=setup.extra["longer"]))
    longer = on_longer.test_scores(_N_LONGER_ROWS)
    return {
        **trained.test_scores(_N_ROWS),
        "longer_accuracy": longer["accuracy"],
        "longer_loss": longer["loss"],
    }


def _arm(name: str, en: str, zh: str) -> Arm:
    return Arm(name, Bilingual(en, zh), {"model.positions": name})


def _reorder(name: str, en: str, zh: str, task: Reorder) -> Condition:
    return Condition(name, Bilingual(en, zh), {"task": task, "extra.longer": replace(task, lengths=(64, 64))})


_BIDIRECTIONAL = Reorder("previous", lengths=(4, 16), shape="encoder")
_CAUSAL = replace(_BIDIRECTIONAL, shape="decoder")

POSITIONS = Question(
    id="positions",
    title=Bilingual("Why does a Transformer need positions?", "Transformer 为什么需要位置编码？"),
    method=Bilingual(
        "Two layers learn to repeat the symbol before each position of sequences of 4 to 16 symbols, once with "
        "bidirectional and once with causal attention, and to predict the next word of one or two sentences. The "
        "models are also tested on sequences that are longer than any in training: 64 symbols, or six sentences. "
        "Learned positions then use vectors that were never trained.",
        "两层模型学习在每个位置写出前一个符号，序列长 4 到 16，分别用双向和因果注意力；"
        "另外学习在一到两个句子中预测下一个词。再用比训练时更长的序列测试：64 个符号，或六个句子。"
        "这时可学习位置编码用到的是从未训练过的向量。",
    ),
    setup=Setup(
        model={
            "width": 48,
            "n_encoder_layers": 2,
            "n_decoder_layers": 2,
            "feed_forward_width": 96,
            "n_heads": 4,
            "norm_placement": "pre",
        },
        steps=200,
        n_rows=32,
    ),
    full={"steps": 1500},
    arms=(
        _arm("none", "none", "无"),
        _arm("sinusoidal", "sinusoidal", "正弦"),
        _arm("learned", "learned", "可学习"),
        _arm("rotary", "rotary", "旋转 (RoPE)"),
        _arm("alibi", "ALiBi", "ALiBi"),
    ),
    conditions=(
        _reorder("bidirectional", "previous symbol, bidirectional", "前一个符号，双向", _BIDIRECTIONAL),
        _reorder("causal", "previous symbol, causal", "前一个符号，因果", _CAUSAL),
        Condition(
            "text",
            Bilingual("next word, causal", "下一个词，因果"),
            {"task": Text("causal", (1, 2)), "extra.longer": Text("causal", (6, 6))},
        ),
    ),
    measures=(
        ACCURACY,
        LOSS,
        Measure(
            "longer_accuracy",
            Bilingual(
                "accuracy on longer sequences, %",
                "更长序列上的准确率 (%)",
            ),
            "higher",
            is_percentage=True,
        ),
        Measure(
            "longer_loss",
            Bilingual(
                "loss on longer sequences, nats",
                "更长序列上的损失 (nat)",
            ),
            "lower",
        ),
    ),
    tuned_on="loss",
    learning_rates=(3e-3, 1e-2),
    n_tuning_seeds=1,
    trial=_trial,
    comparisons=(
        Comparison(
            "none",
            "sinusoidal",
            "accuracy",
            "lower",
            condition="bidirectional",
            is_key=True,
            because=Bilingual(
                "without positions, a sequence is a set",
                "没有位置，序列只是一个集合",
            ),
        ),
        Comparison(
            "none",
            "none",
            "accuracy",
            "higher",
            condition="causal",
            against_condition="bidirectional",
            is_key=True,
            because=Bilingual("the causal mask itself reveals the order", "因果掩码本身透露了顺序"),
        ),
        Comparison(
            "none",
            "sinusoidal",
            "accuracy",
            "lower",
            condition="causal",
            because=Bilingual("order from the mask alone is harder to learn", "只靠掩码得到顺序更难学"),
        ),
        Comparison(
            "none",
            "sinusoidal",
            "loss",
            "higher",
            condition="text",
            because=Bilingual("published language models are slightly worse without", "已发表的语言模型去掉后略差"),
        ),
        Comparison(
            "learned",
            "sinusoidal",
            "accuracy",
            "same",
            condition="bidirectional",
            margin=0.05,
            because=Bilingual(
                "25.7 and 25.8 BLEU in Vaswani's Table 3",
                "原论文表 3 中 BLEU 为 25.7 和 25.8",
            ),
        ),
        Comparison(
            "alibi",
            "rotary",
            "accuracy",
            "lower",
            condition="bidirectional",
            because=Bilingual("a penalty on distance cannot tell left from right", "只惩罚距离，分不清左右"),
        ),
        Comparison(
            "alibi",
            "sinusoidal",
            "longer_accuracy",
            "higher",
            condition="causal",
            is_key=True,
            because=Bilingual("the penalty is the same at every position", "距离惩罚与绝对位置无关"),
        ),
        Comparison(
            "rotary",
            "sinusoidal",
            "longer_accuracy",
            "higher",
            condition="causal",
            because=Bilingual("scores depend only on distance", "分数只取决于相对距离"),
        ),
        Comparison(
            "learned",
            "sinusoidal",
            "longer_accuracy",
            "lower",
            condition="causal",
            because=Bilingual("vectors of unseen positions were never trained", "未见过的位置从未训练"),
        ),
        Comparison(
            "alibi",
            "sinusoidal",
            "longer_loss",
            "lower",
            condition="text",
            because=Bilingual("the same, on sentences", "同上，换成句子"),
        ),
    ),
    answer=Answer(
        yes=Bilingual(
            "Without positions, bidirectional attention sees a set, not a sequence. It finds the previous symbol in "
            "{{mean positions none bidirectional accuracy}} % of cases, with sinusoids in "
            "{{mean positions sinusoidal bidirectional accuracy}} %. A causal mask reveals the order in part: "
            "{{mean positions none causal accuracy}} % without positions. On sequences four times as long as in "
            "training, causal models with ALiBi keep {{mean positions alibi causal longer_accuracy}} %, with "
            "sinusoids {{mean positions sinusoidal causal longer_accuracy}} %.",
            "没有位置编码，双向注意力看到的是集合，不是序列。它找到前一个符号的准确率为 "
            "{{mean positions none bidirectional accuracy}} %，加正弦编码为 "
            "{{mean positions sinusoidal bidirectional accuracy}} %。因果掩码本身透露了一部分顺序，不加位置编码也有 "
            "{{mean positions none causal accuracy}} %。测试序列长到训练时的四倍，因果模型用 ALiBi 为 "
            "{{mean positions alibi causal longer_accuracy}} %，用正弦编码为 "
            "{{mean positions sinusoidal causal longer_accuracy}} %。",
        ),
        no=Bilingual(
            "Not all predictions held here. Without positions, accuracy is {{mean positions none bidirectional accuracy}} % "
            "with bidirectional and {{mean positions none causal accuracy}} % with causal attention; with sinusoids, "
            "{{mean positions sinusoidal bidirectional accuracy}} % and {{mean positions sinusoidal causal accuracy}} %.",
            "本次实验没有全部符合预测。不加位置编码时，双向注意力准确率 {{mean positions none bidirectional accuracy}} %，"
            "因果注意力 {{mean positions none causal accuracy}} %；加正弦编码时分别为 "
            "{{mean positions sinusoidal bidirectional accuracy}} % 和 {{mean positions sinusoidal causal accuracy}} %。",
        ),
    ),
    plots=(Plot("accuracy"), Plot("longer_accuracy"), Plot("loss", conditions=("text",))),
    sources=(
        Source(
            "Shaw et al. 2018",
            Bilingual("Without positions: 12.5 instead of 25.5 BLEU.", "去掉位置信息：BLEU 从 25.5 降到 12.5。"),
        ),
        Source(
            "Haviv et al. 2022",
            Bilingual(
                "Perplexity without positions: a masked language model 147 instead of 4.06, a causal one 20.97 instead "
                "of 20.16.",
                "去掉位置编码后的困惑度：掩码语言模型从 4.06 升到 147，因果语言模型只从 20.16 升到 20.97。",
            ),
        ),
        Source(
            "Vaswani et al. 2017, Table 3",
            Bilingual("Learned positions 25.7 BLEU, sinusoids 25.8.", "可学习位置编码 BLEU 25.7，正弦编码 25.8。"),
        ),
    ),
    claims=(
        Claim(
            Bilingual(
                "Without positions, a Transformer cannot know the order of its input.",
                "没有位置编码，Transformer 就无法知道词序。",
            ),
            "half",
            Bilingual(
                "True of bidirectional attention ({{mean positions none bidirectional accuracy}} %), wrong of causal "
                "attention ({{mean positions none causal accuracy}} %): the first position sees one key, the second two, …",
                "双向注意力确实如此（{{mean positions none bidirectional accuracy}} %）；因果注意力则不然"
                "（{{mean positions none causal accuracy}} %）：第一个位置只看到一个键，第二个看到两个，依此类推。",
            ),
        ),
        Claim(
            Bilingual(
                "Sinusoids are defined for any length, so the model handles longer texts than in training.",
                "正弦编码对任意长度都有定义，所以模型能处理比训练时更长的文本。",
            ),
            "wrong",
            Bilingual(
                "They are defined but the model has not learned to use them: "
                "{{mean positions sinusoidal causal accuracy}} % at the lengths of training, "
                "{{mean positions sinusoidal causal longer_accuracy}} % on longer sequences. There is no clear "
                "difference from learned positions: {{diff positions sinusoidal learned causal longer_accuracy}} "
                "points.",
                "有定义不等于会用：训练长度内 {{mean positions sinusoidal causal accuracy}} %，更长的序列上只有 "
                "{{mean positions sinusoidal causal longer_accuracy}} %。与可学习位置编码没有明显差异："
                "{{diff positions sinusoidal learned causal longer_accuracy}} 个百分点。",
            ),
        ),
        Claim(
            Bilingual("Learned positions are as good as sinusoids.", "可学习位置编码与正弦编码效果相当。"),
            "half",
            Bilingual(
                "After this short training they differ by {{diff positions learned sinusoidal causal accuracy}} "
                "points with causal and by {{diff positions learned sinusoidal bidirectional accuracy}} with "
                "bidirectional attention. A likely reason: vectors that start at random first have to be learned.",
                "短时间训练后，因果注意力下相差 {{diff positions learned sinusoidal causal accuracy}} 个百分点，"
                "双向注意力下相差 {{diff positions learned sinusoidal bidirectional accuracy}} 个百分点。可能的原因："
                "随机初始化的位置向量需要时间学习。",
            ),
        ),
        Claim(
            Bilingual("A causal language model is worse without positions.", "因果语言模型去掉位置编码会变差。"),
            "half",
            Bilingual(
                "On exact order, yes ({{diff positions none sinusoidal causal accuracy}} points). On the sentences of the "
                "built-in corpus, after this short training, the loss changes by {{diff positions none sinusoidal text loss}} "
                "nats against sinusoids and {{diff positions none rotary text loss}} against rotary positions: it depends on "
                "what it is compared with.",
                "需要精确顺序时确实变差（{{diff positions none sinusoidal causal accuracy}} 个百分点）。在内置语料的句子上，短时间训练后，"
                "与正弦编码相比损失变化 {{diff positions none sinusoidal text loss}} nat，与旋转位置编码相比为 "
                "{{diff positions none rotary text loss}} nat：要看和谁比。",
            ),
        ),
        Claim(
            Bilingual("Positional encodings are put inside each head.", "位置编码加在每个注意力头里面。"),
            "half",
            Bilingual(
                "Sinusoidal and learned positions are added to the embeddings, once. Only rotary positions and ALiBi act "
                "inside attention.",
                "正弦和可学习位置编码只在词向量上加一次；只有旋转位置编码和 ALiBi 作用在注意力内部。",
            ),
        ),
    ),
)
