"""Why −∞ before the softmax?"""

from dataclasses import replace
from functools import partial

import torch
from torch import Generator, Tensor

from manyheads.lab.lab_tasks import PAD, LabBatch, Lookup, Reorder
from manyheads.lab.maskings import PRECISIONS, mask_in, with_masking
from manyheads.lab.question import ACCURACY, Answer, Arm, Claim, Comparison, Condition, Measure, Plot, Question, Source
from manyheads.lab.setup import Setup
from manyheads.lab.trial import Trained, counted_logits, make_model, train_model
from manyheads.language import Bilingual
from manyheads.model import Transformer, evaluating

_N_MORE_PADS = 100
# The 3 × 3 example of study notes, computed correctly: Q = X W_Q, K = X W_K.
_NOTES_Q = torch.tensor([[30.0, 36, 42], [66, 81, 96], [102, 126, 150]])
_NOTES_K = torch.tensor([[14.0, 32, 50], [32, 77, 122], [50, 122, 194]])


def _trial(setup: Setup, seed: int) -> dict[str, float]:
    setup = replace(setup, alter=partial(with_masking, **setup.extra))
    trained = train_model(setup, seed)
    batch, tap = trained.tapped()
    assert batch.source is not None
    weights = tap["encoder.0.self.weights"].double()[:, :, 0]  # of the query: the only position that is predicted
    visible = (batch.source != PAD)[:, None]
    notes = _mask_notes(setup)
    return {
        "accuracy": trained.test_scores()["accuracy"],
        "padded_accuracy": _padded_accuracy(trained),
        "missing": float((1 - (weights * visible).sum(-1)).abs().mean()),
        "leak": float((weights * ~visible).sum(-1).mean()),
        "future": _future_influence(setup, seed),
        "notes_leak": float(notes[0, 2]),
        "notes_visible": float(notes[0, :2].sum()),
        "nan": float(_mask_empty_row(setup).isnan().any()),
    }


def _padded_accuracy(trained: Trained) -> float:
    """Accuracy on the same rows with more padding, which should change nothing."""
    right, count = 0, 0
    with evaluating(trained.model):
        for batch in trained.test_batches():
            assert batch.source is not None
            parts = (batch.source, batch.expected, batch.is_counted)
            more = [torch.nn.functional.pad(part, (0, _N_MORE_PADS)) for part in parts]
            padded = LabBatch(more[0], None, more[1], more[2])
            right += int((counted_logits(trained.model, padded).argmax(-1) == batch.expected[batch.is_counted]).sum())
            count += batch.n_tokens
    return right / count


def _future_influence(setup: Setup, seed: int) -> float:
    """How much the output of earlier positions of an untrained causal model changes with the last symbol."""
    task = Reorder(lengths=(12, 12), shape="decoder")
    model = make_model(replace(setup, task=task), seed)
    target = task.batch(64, Generator().manual_seed(seed)).target
    assert target is not None and isinstance(model, Transformer)
    other = target.clone()
    other[:, -1] = 4 + (target[:, -1] - 4 + 1) % task.n_symbols
    with evaluating(model):
        one, two = (model.hidden(None, ids)[:, :-1].double() for ids in (target, other))
    return float(((one - two).norm(dim=-1) / one.norm(dim=-1)).mean())


def _mask_notes(setup: Setup) -> Tensor:
    """The weights of the example in which the third key is hidden."""
    scores = _NOTES_Q @ _NOTES_K.mT / 3**0.5
    visible = torch.tensor([[True, True, False]])
    return mask_in(setup.extra["precision"], setup.extra["masking"], scores, visible).double()


def _mask_empty_row(setup: Setup) -> Tensor:
    """The weights of a query that may see nothing."""
    visible = torch.zeros(1, 3, dtype=torch.bool)
    return mask_in(setup.extra["precision"], setup.extra["masking"], torch.zeros(1, 3), visible)


def _arm(name: str, en: str, zh: str) -> Arm:
    return Arm(name, Bilingual(en, zh), {"extra.masking": name})


MASK = Question(
    id="mask",
    title=Bilingual("Why −∞ before the softmax, not 0 after it?", "掩码为什么在 softmax 之前加 −∞，而不是之后置 0？"),
    method=Bilingual(
        "One attention layer learns to look up a record by its key in sequences of 2 to 12 records, padded to the "
        "same length. Padding is hidden in five ways, with scores and softmax in three precisions. The models are "
        "tested again with 100 more padding tokens in every sequence, which should change nothing. Two values need "
        "no training: how much the outputs of earlier positions of a causal model change with the last symbol, and "
        "the weights of the 3 × 3 example of the study notes (scores in the thousands) when its third key is hidden.",
        "单层注意力学习按键查找，每个序列 2 到 12 条记录，填充到相同长度。填充位用五种方法屏蔽，分数和 softmax "
        "用三种精度计算。测试时再给每个序列多加 100 个填充位，结果本不应变化。另有两项不需要训练："
        "因果模型中最后一个符号改变时，前面各位置的输出变了多少；笔记里 3 × 3 的例子（分数上千）"
        "屏蔽第三个键后的权重。",
    ),
    setup=Setup(
        model={
            "width": 64,
            "n_encoder_layers": 1,
            "n_decoder_layers": 1,
            "feed_forward_width": 128,
            "n_heads": 1,
            "norm_placement": "pre",
            "positions": "none",
        },
        task=Lookup(n_records=(2, 12)),
        steps=200,
    ),
    full={"steps": 2000},
    arms=(
        _arm("infinity", "−∞ before", "之前设为 −∞"),
        _arm("zero", "0 after", "之后置 0"),
        _arm("renormalized", "0 after, divided by the sum", "之后置 0 再归一化"),
        _arm("1000", "−1000 added before", "之前加 −1000"),
        _arm("1e9", "−10⁹ added before", "之前加 −10⁹"),
    ),
    conditions=tuple(
        Condition(precision, Bilingual(precision, precision), {"extra.precision": precision})
        for precision in PRECISIONS
    ),
    measures=(
        ACCURACY,
        Measure(
            "padded_accuracy",
            Bilingual("accuracy with 100 more padding tokens, %", "多加 100 个填充位后的准确率 (%)"),
            "higher",
            is_percentage=True,
        ),
        Measure(
            "missing",
            Bilingual("distance of a row's sum from 1, %", "每行权重之和与 1 的差 (%)"),
            "lower",
            is_percentage=True,
            digits=4,
        ),
        Measure(
            "leak", Bilingual("weight on padding, %", "落在填充位上的权重 (%)"), "lower", is_percentage=True, digits=4
        ),
        Measure(
            "future",
            Bilingual("change of earlier outputs with the last symbol, %", "最后一个符号改变时前面输出的变化 (%)"),
            "lower",
            is_percentage=True,
            digits=4,
        ),
        Measure(
            "notes_leak",
            Bilingual("3 × 3 example: weight on the hidden key, %", "3 × 3 例子：被屏蔽的键得到的权重 (%)"),
            "lower",
            is_percentage=True,
        ),
        Measure(
            "notes_visible",
            Bilingual("3 × 3 example: weight on the visible keys, %", "3 × 3 例子：可见的键得到的权重 (%)"),
            "higher",
            is_percentage=True,
        ),
        Measure("nan", Bilingual("NaN if a query sees nothing", "查询全被屏蔽时是否得到 NaN"), "lower", digits=0),
    ),
    tuned_on="accuracy",
    learning_rates=(3e-3, 1e-2),
    n_tuning_seeds=1,
    trial=_trial,
    comparisons=(
        Comparison(
            "zero",
            "infinity",
            "missing",
            "higher",
            condition="float32",
            is_key=True,
            because=Bilingual("hidden keys have taken their share of the softmax", "被屏蔽的键已经分走了一部分权重"),
        ),
        Comparison(
            "zero",
            "infinity",
            "future",
            "higher",
            condition="float32",
            is_key=True,
            because=Bilingual("the denominator still contains the future", "分母里仍有未来的分数"),
        ),
        Comparison(
            "zero",
            "infinity",
            "accuracy",
            "lower",
            condition="float32",
            because=Bilingual("row sums vary with the amount of padding", "每行之和随填充量变化"),
        ),
        Comparison(
            "zero",
            "infinity",
            "padded_accuracy",
            "lower",
            condition="float32",
            is_key=True,
            because=Bilingual("more padding leaves less weight for real tokens", "填充越多，真实词分到的权重越少"),
        ),
        Comparison(
            "renormalized",
            "infinity",
            "accuracy",
            "same",
            condition="float32",
            margin=0.02,
            because=Bilingual("the same function, unless weights underflow", "数学上等价，除非权重下溢"),
        ),
        Comparison(
            "renormalized",
            "infinity",
            "notes_visible",
            "lower",
            condition="float32",
            because=Bilingual("large scores underflow before the division", "分数大时，相除之前就已下溢"),
        ),
        Comparison(
            "1000",
            "infinity",
            "accuracy",
            "same",
            condition="float32",
            margin=0.02,
            because=Bilingual("exp(−1000) is 0 in float32", "float32 中 exp(−1000) 就是 0"),
        ),
        Comparison(
            "1000",
            "infinity",
            "leak",
            "same",
            condition="float16",
            margin=1e-6,
            because=Bilingual("exp(−1000) is 0 in float16, too", "float16 中同样是 0"),
        ),
        Comparison(
            "1000",
            "infinity",
            "notes_leak",
            "higher",
            condition="float32",
            because=Bilingual("scores that differ by more than 1000", "分数之差超过 1000"),
        ),
        Comparison(
            "1e9",
            "infinity",
            "accuracy",
            "same",
            condition="bfloat16",
            margin=0.02,
            because=Bilingual("bfloat16 has the range of float32", "bfloat16 的范围与 float32 相同"),
        ),
        Comparison(
            "1e9",
            "infinity",
            "nan",
            "higher",
            condition="float16",
            because=Bilingual("−10⁹ is −∞ in float16: an empty row is 0/0", "float16 中 −10⁹ 变成 −∞，空行成了 0/0"),
        ),
    ),
    answer=Answer(
        yes=Bilingual(
            "After the softmax it is too late: hidden keys have already taken their share of the weight. With "
            "weights set to 0 after it, rows are {{mean mask zero float32 missing}} % short of 1, the last symbol "
            "changes earlier outputs by {{mean mask zero float32 future}} %, and accuracy with more padding is "
            "{{mean mask zero float32 padded_accuracy}} %, with −∞ before it "
            "{{mean mask infinity float32 padded_accuracy}} %. Adding −1000 before it gives "
            "{{mean mask 1000 float32 padded_accuracy}} %, but gives a hidden key "
            "{{mean mask 1000 float32 notes_leak}} % of the weight when scores differ by thousands.",
            "softmax 之后再置 0 就晚了：被屏蔽的键已经分走了一部分权重。之后置 0，每行权重之和比 1 少 "
            "{{mean mask zero float32 missing}} %，最后一个符号会使前面的输出改变 {{mean mask zero float32 future}} "
            "%；填充增多时准确率为 {{mean mask zero float32 padded_accuracy}} %，之前设 −∞ 为 "
            "{{mean mask infinity float32 padded_accuracy}} %。之前加 −1000 为 "
            "{{mean mask 1000 float32 padded_accuracy}} %，但分数相差上千时，被屏蔽的键会得到 "
            "{{mean mask 1000 float32 notes_leak}} % 的权重。",
        ),
        no=Bilingual(
            "Not all predictions held here. With weights set to 0 after the softmax, accuracy is "
            "{{mean mask zero float32 accuracy}} %, with −∞ before it {{mean mask infinity float32 accuracy}} %.",
            "本次实验没有全部符合预测。softmax 之后置 0 的准确率为 {{mean mask zero float32 accuracy}} %，之前设 −∞ 为 "
            "{{mean mask infinity float32 accuracy}} %。",
        ),
    ),
    plots=(
        Plot("padded_accuracy"),
        Plot("missing", conditions=("float32",)),
        Plot("future", conditions=("float32",)),
        Plot("notes_leak", conditions=("float32",)),
    ),
    sources=(
        Source(
            "Vaswani et al. 2017, section 3.2.3",
            Bilingual(
                "Sets hidden connections to −∞ in the input of the softmax; no alternative is compared.",
                "在 softmax 的输入中把被屏蔽的连接设为 −∞，没有比较其他做法。",
            ),
        ),
    ),
    claims=(
        Claim(
            Bilingual(
                "A masked decoder sets the weights of later positions to 0.", "解码器的掩码就是把后面位置的权重设为 0。"
            ),
            "half",
            Bilingual(
                "They end up as 0, but the zero has to come from −∞ before the softmax. Set to 0 afterwards, the sum of a row "
                "is off by {{mean mask zero float32 missing}} %, and the future still changes earlier outputs by "
                "{{mean mask zero float32 future}} % (−∞: {{mean mask infinity float32 future}} %).",
                "结果是 0，但这个 0 必须来自 softmax 之前的 −∞。之后才置 0，每行之和偏差 {{mean mask zero float32 missing}} %，"
                "未来仍会使前面的输出改变 {{mean mask zero float32 future}} %（−∞ 为 {{mean mask infinity float32 future}} %）。",
            ),
        ),
        Claim(
            Bilingual("−1000 is enough for padding.", "填充位加 −1000 就够了。"),
            "half",
            Bilingual(
                "For ordinary scores it is: weight on padding {{mean mask 1000 float32 leak}} %, accuracy "
                "{{diff mask 1000 infinity float32 accuracy}} points from −∞. With scores in the thousands, as in the 3 × 3 "
                "example, the hidden key gets {{mean mask 1000 float32 notes_leak}} % of the weight.",
                "分数正常时确实够：填充位得到的权重为 {{mean mask 1000 float32 leak}} %，准确率与 −∞ 相差 "
                "{{diff mask 1000 infinity float32 accuracy}} 个百分点。分数上千时（如 3 × 3 的例子），被屏蔽的键得到 "
                "{{mean mask 1000 float32 notes_leak}} % 的权重。",
            ),
        ),
        Claim(
            Bilingual(
                "Dividing by the sum again repairs weights that were set to 0.", "置 0 之后重新归一化，就没有问题了。"
            ),
            "half",
            Bilingual(
                "Accuracy is {{diff mask renormalized infinity float32 accuracy}} points from −∞. But where a hidden key has by "
                "far the largest score, all visible weights have underflowed: in the 3 × 3 example "
                "{{mean mask renormalized float32 notes_visible}} % is left to divide.",
                "准确率与 −∞ 相差 {{diff mask renormalized infinity float32 accuracy}} 个百分点。但如果被屏蔽的键分数远大于其他键，"
                "可见的权重早已下溢：3 × 3 的例子中只剩 {{mean mask renormalized float32 notes_visible}} % 可供归一化。",
            ),
        ),
        Claim(
            Bilingual("−10⁹ breaks in half precision.", "半精度下 −10⁹ 会出问题。"),
            "half",
            Bilingual(
                "In float16 it becomes −∞, and accuracy is {{mean mask 1e9 float16 accuracy}} % "
                "(−∞: {{mean mask infinity float16 accuracy}} %). Only a query that sees no key at all gives NaN. bfloat16 holds "
                "−10⁹: {{mean mask 1e9 bfloat16 accuracy}} %.",
                "float16 中它变成 −∞，准确率为 {{mean mask 1e9 float16 accuracy}} %（直接用 −∞ 为 "
                "{{mean mask infinity float16 accuracy}} %）；只有一个键都看不到的查询才会得到 NaN。bfloat16 能表示 −10⁹："
                "{{mean mask 1e9 bfloat16 accuracy}} %。",
            ),
        ),
    ),
)
