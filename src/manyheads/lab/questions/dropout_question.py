"""Does dropout help?"""

import torch.nn.functional as F
from torch import Generator

from manyheads.lab.lab_tasks import FewRows, Text
from manyheads.lab.question import Answer, Arm, Claim, Comparison, Condition, Measure, Plot, Question, Source
from manyheads.lab.setup import Setup
from manyheads.lab.trial import Trained, counted_logits, train_model
from manyheads.language import Bilingual
from manyheads.model.evaluation import evaluating

_TEXT = Text("causal", n_train=2000)


def _trial(setup: Setup, seed: int) -> dict[str, float]:
    trained = train_model(setup, seed)
    return {**trained.test_scores(), "training_loss": _training_loss(trained)}


def _training_loss(trained: Trained) -> float:
    """The loss of training rows without dropout."""
    batch = trained.setup.task.batch(256, Generator().manual_seed(8_000_000))
    with evaluating(trained.model):
        logits = counted_logits(trained.model, batch)
        return float(F.cross_entropy(logits.double(), batch.expected[batch.is_counted]))


DROPOUT = Question(
    id="dropout",
    title=Bilingual("Does dropout help?", "Dropout 有用吗？"),
    method=Bilingual(
        "A causal Transformer of one layer (width 32) predicts the next word of sentences of the built-in corpus: 200 "
        "steps of 32 sentences that are drawn from the same 100 every time, or from 2,000. Losses are measured without dropout.",
        "一层因果 Transformer（宽度 32）预测内置语料的下一个词，共 200 步，每步 32 句：或者反复取自同样的 100 句，"
        "或者取自 2000 句。损失都在关闭 dropout 时测量。",
    ),
    setup=Setup(
        model={"width": 32, "n_decoder_layers": 1, "feed_forward_width": 128, "n_heads": 4, "norm_placement": "pre"},
        n_rows=32,
        steps=200,
        warmup=20,
    ),
    full={"steps": 1000},
    arms=tuple(
        Arm(str(rate), Bilingual(f"dropout {rate}", f"dropout {rate}"), {"model.dropout": rate})
        for rate in (0.0, 0.1, 0.3)
    ),
    conditions=(
        Condition("few", Bilingual("100 sentences", "100 句"), {"task": FewRows(_TEXT, 100)}),
        Condition("many", Bilingual("2,000 sentences", "2000 句"), {"task": _TEXT}),
    ),
    measures=(
        Measure("loss", Bilingual("held-out loss, nats", "测试损失 (nat)"), "lower", digits=2),
        Measure(
            "training_loss",
            Bilingual("loss of the training sentences, nats", "训练句子的损失 (nat)"),
            "lower",
            digits=2,
        ),
        Measure("accuracy", Bilingual("held-out accuracy, %", "测试准确率 (%)"), "higher", is_percentage=True),
    ),
    tuned_on="loss",
    learning_rates=(1e-3, 3e-3, 1e-2),
    n_tuning_seeds=1,
    trial=_trial,
    comparisons=(
        Comparison(
            "0.1",
            "0.0",
            "loss",
            "lower",
            condition="few",
            is_key=True,
            because=Bilingual("noise keeps the model from learning sentences by heart", "噪声使模型难以死记句子"),
        ),
        Comparison(
            "0.3",
            "0.1",
            "loss",
            "lower",
            condition="few",
            because=Bilingual("little data needs strong regularization", "数据少，正则化要强"),
        ),
        Comparison(
            "0.3",
            "0.0",
            "training_loss",
            "higher",
            condition="few",
            because=Bilingual("it fits the training sentences less", "对训练句子拟合得更少"),
        ),
        Comparison(
            "0.3",
            "0.0",
            "loss",
            "higher",
            condition="many",
            is_key=True,
            because=Bilingual("a short run on much data does not overfit", "数据多、步数少时不会过拟合"),
        ),
        Comparison(
            "0.1",
            "0.0",
            "loss",
            "higher",
            condition="many",
            because=Bilingual("without overfitting, noise only slows learning", "没有过拟合，噪声只会拖慢学习"),
        ),
    ),
    answer=Answer(
        yes=Bilingual(
            "Yes, where the same data is seen many times. With 100 sentences, dropout 0.1 changes the held-out loss "
            "by {{diff dropout 0.1 0.0 few loss}} nats, and 0.3 instead of 0.1 by {{diff dropout 0.3 0.1 few loss}}. "
            "With 2,000 sentences and the same number of steps, dropout 0.1 changes it by "
            "{{diff dropout 0.1 0.0 many loss}} and 0.3 by {{diff dropout 0.3 0.0 many loss}}: in so short a "
            "training, noise then costs more than it gains.",
            "同样的数据反复使用时有用。只有 100 句时，dropout 0.1 使测试损失变化 {{diff dropout 0.1 0.0 few loss}} "
            "nat，从 0.1 加到 0.3 则变化 {{diff dropout 0.3 0.1 few loss}} nat。有 2000 句、步数相同时，0.1 使它变化 "
            "{{diff dropout 0.1 0.0 many loss}} nat，0.3 使它变化 {{diff dropout 0.3 0.0 many loss}} nat："
            "训练这样短时，噪声得不偿失。",
        ),
        no=Bilingual(
            "Not all predictions held here. With 100 sentences, dropout 0.1 changes the held-out loss by "
            "{{diff dropout 0.1 0.0 few loss}} nats; with 2,000 sentences, dropout 0.3 changes it by "
            "{{diff dropout 0.3 0.0 many loss}}.",
            "本次实验没有全部符合预测。100 句时，dropout 0.1 使测试损失变化 {{diff dropout 0.1 0.0 few loss}} nat；"
            "2000 句时，dropout 0.3 使它变化 {{diff dropout 0.3 0.0 many loss}}。",
        ),
    ),
    plots=(Plot("loss"), Plot("training_loss")),
    sources=(
        Source(
            "Vaswani et al. 2017, Table 3",
            Bilingual(
                "Base model: perplexity 5.77 and 24.6 BLEU without dropout, 4.92 and 25.8 with 0.1.",
                "base 模型：不用 dropout 时困惑度 5.77、24.6 BLEU，用 0.1 时 4.92、25.8。",
            ),
        ),
    ),
    claims=(
        Claim(
            Bilingual("Dropout always helps.", "Dropout 总有好处。"),
            "wrong",
            Bilingual(
                "With 100 sentences, 0.1 changes the held-out loss by {{diff dropout 0.1 0.0 few loss}} nats; with 2,000 "
                "by {{diff dropout 0.1 0.0 many loss}}.",
                "100 句时，0.1 使测试损失变化 {{diff dropout 0.1 0.0 few loss}} nat；2000 句时变化 "
                "{{diff dropout 0.1 0.0 many loss}}。",
            ),
        ),
        Claim(
            Bilingual("The less data, the more dropout.", "数据越少，dropout 越要大。"),
            "half",
            Bilingual(
                "Less data does call for some. But on 100 sentences 0.3 is worse than 0.1: "
                "{{diff dropout 0.3 0.1 few loss}} nats. The learning rate was tuned for each, and a lower one also "
                "keeps a model from overfitting.",
                "数据少时确实要用一些。但只有 100 句时，0.3 比 0.1 差：{{diff dropout 0.3 0.1 few loss}} nat。"
                "各组学习率分别调过，降低学习率同样能抑制过拟合。",
            ),
        ),
    ),
)
