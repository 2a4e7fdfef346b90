"""What does label smoothing buy?"""

import torch
import torch.nn.functional as F
from torch import Tensor

from manyheads.lab.lab_tasks import Lookup, Repeated
from manyheads.lab.probes import calibration_error
from manyheads.lab.question import ACCURACY, Answer, Arm, Claim, Comparison, Condition, Measure, Plot, Question, Source
from manyheads.lab.setup import Setup
from manyheads.lab.trial import train_model
from manyheads.language import Bilingual


def spread_over_all(logits: Tensor, expected: Tensor, smoothing: float) -> Tensor:
    """Label smoothing as PyTorch defines it: ε / V for every class, the right one included."""
    return F.cross_entropy(logits, expected, label_smoothing=smoothing)


def _trial(setup: Setup, seed: int) -> dict[str, float]:
    trained = train_model(setup, seed)
    parts = list(trained.test_logits())
    logits, expected = (torch.cat(part) for part in zip(*parts, strict=True))
    return {
        **trained.test_scores(),
        "calibration_error": calibration_error(logits.softmax(-1), expected),
        "confidence": float(logits.double().softmax(-1).amax(-1).mean()),
        "target": _target_of_five(setup),
    }


def _target_of_five(setup: Setup) -> float:
    """The target probability of the right class of five, read off the gradient of the loss: p − target."""
    logits = torch.zeros(1, 5, dtype=torch.double, requires_grad=True)
    setup.loss(logits, torch.tensor([2]), setup.smoothing).backward()
    assert logits.grad is not None
    return float(1 / 5 - logits.grad[0, 2])


SMOOTHING = Question(
    id="smoothing",
    title=Bilingual("What does label smoothing buy?", "标签平滑有什么用？"),
    method=Bilingual(
        "One layer learns to look up a record by its key from only 640 sequences, seen about fifteen times each, so "
        "that it can overfit. In the second condition a fifth of the training answers is replaced by random ones. "
        "The test is clean. Smoothing follows the code of 2017 (ε/(V − 1) for each wrong class) or PyTorch (ε/V for "
        "every class); V is 81.",
        "单层模型学习按键查找，只有 640 个训练序列，每个约看十五遍，因此会过拟合。第二种条件下，"
        "训练答案有五分之一换成随机答案；测试数据不含噪声。平滑用两种定义：2017 年代码（每个错误类 ε/(V − 1)）和 "
        "PyTorch（每个类 ε/V），V = 81。",
    ),
    setup=Setup(
        model={
            "width": 64,
            "n_encoder_layers": 1,
            "feed_forward_width": 128,
            "n_heads": 4,
            "norm_placement": "pre",
            "positions": "none",
        },
        steps=300,
        n_rows=32,
    ),
    full={"steps": 1000},
    arms=(
        Arm("0", Bilingual("ε = 0", "ε = 0"), {"smoothing": 0.0}),
        Arm("0.1", Bilingual("ε = 0.1", "ε = 0.1"), {"smoothing": 0.1}),
        Arm("0.2", Bilingual("ε = 0.2", "ε = 0.2"), {"smoothing": 0.2}),
        Arm(
            "pytorch",
            Bilingual("ε = 0.1, PyTorch's definition", "ε = 0.1，PyTorch 的定义"),
            {"smoothing": 0.1, "loss": spread_over_all},
        ),
    ),
    conditions=tuple(
        Condition(name, label, {"task": Repeated(Lookup(n_keys=8, n_values=8, n_records=(6, 6), noise=noise), 20)})
        for name, label, noise in (
            ("clean", Bilingual("clean labels", "标签无噪声"), 0.0),
            ("noisy", Bilingual("20 % random labels", "20 % 随机标签"), 0.2),
        )
    ),
    measures=(
        ACCURACY,
        Measure("loss", Bilingual("negative log-likelihood, nats", "负对数似然 (nat)"), "lower"),
        Measure(
            "calibration_error",
            Bilingual("expected calibration error, %", "期望校准误差 (%)"),
            "lower",
            is_percentage=True,
        ),
        Measure("confidence", Bilingual("mean confidence, %", "平均置信度 (%)"), is_percentage=True),
        Measure("target", Bilingual("target of the right class of five", "五类中正确类的目标概率")),
    ),
    tuned_on="accuracy",
    learning_rates=(3e-3, 1e-2),
    trial=_trial,
    comparisons=(
        Comparison(
            "0.1",
            "0",
            "accuracy",
            "higher",
            condition="noisy",
            is_key=True,
            because=Bilingual("a wrong label pulls less", "错误标签的拉力变小"),
        ),
        Comparison(
            "0.1",
            "0",
            "calibration_error",
            "lower",
            condition="noisy",
            is_key=True,
            because=Bilingual("an overfitted model is too confident", "过拟合的模型过度自信"),
        ),
        Comparison(
            "0.2",
            "0.1",
            "accuracy",
            "higher",
            condition="noisy",
            because=Bilingual("ε then equals the share of noise", "此时 ε 等于噪声比例"),
        ),
        Comparison(
            "0.1",
            "0",
            "accuracy",
            "higher",
            condition="clean",
            because=Bilingual("smoothing regularizes: +0.5 BLEU in the paper", "平滑有正则化作用：论文中 +0.5 BLEU"),
        ),
        Comparison(
            "0.1",
            "0",
            "loss",
            "higher",
            condition="clean",
            is_key=True,
            because=Bilingual("the best prediction of a smoothed model is not 1", "平滑后最优预测不再是 1"),
        ),
        Comparison(
            "0.1",
            "0",
            "calibration_error",
            "higher",
            condition="clean",
            because=Bilingual("confidence is held at 0.9 while accuracy is higher", "置信度被压在 0.9，准确率却更高"),
        ),
        Comparison(
            "pytorch",
            "0.1",
            "accuracy",
            "same",
            condition="noisy",
            margin=0.03,
            because=Bilingual("with V classes the definitions differ by ε/V", "两种定义只差 ε/V"),
        ),
        Comparison(
            "pytorch",
            "0.1",
            "target",
            "higher",
            condition="clean",
            because=Bilingual("the right class also gets its ε/V", "正确类也分到 ε/V"),
        ),
    ),
    answer=Answer(
        yes=Bilingual(
            "It helps a model that overfits: with noisy labels, ε = 0.1 raises accuracy from "
            "{{mean smoothing 0 noisy accuracy}} to {{mean smoothing 0.1 noisy accuracy}} % and lowers the calibration error "
            "from {{mean smoothing 0 noisy calibration_error}} to {{mean smoothing 0.1 noisy calibration_error}} %. It costs "
            "likelihood: with clean labels the loss is {{mean smoothing 0.1 clean loss}} instead of "
            "{{mean smoothing 0 clean loss}} nats.",
            "对过拟合的模型有帮助：标签有噪声时，ε = 0.1 使准确率从 {{mean smoothing 0 noisy accuracy}} % 升到 "
            "{{mean smoothing 0.1 noisy accuracy}} %，校准误差从 {{mean smoothing 0 noisy calibration_error}} % 降到 "
            "{{mean smoothing 0.1 noisy calibration_error}} %。代价是似然：标签无噪声时，损失为 "
            "{{mean smoothing 0.1 clean loss}} nat，不平滑为 {{mean smoothing 0 clean loss}} nat。",
        ),
        no=Bilingual(
            "It is meant to curb overconfidence; here this came out only partly as predicted. With noisy labels, ε = "
            "0.1 changes the calibration error by {{diff smoothing 0.1 0 noisy calibration_error}} points and "
            "accuracy by {{diff smoothing 0.1 0 noisy accuracy}}. With clean labels it changes the calibration error "
            "by {{diff smoothing 0.1 0 clean calibration_error}} points, accuracy by "
            "{{diff smoothing 0.1 0 clean accuracy}} points and the negative log-likelihood by "
            "{{diff smoothing 0.1 0 clean loss}} nats.",
            "标签平滑用来抑制过度自信；本次实验只部分符合预测。标签有噪声时，ε = 0.1 使校准误差变化 "
            "{{diff smoothing 0.1 0 noisy calibration_error}} 个百分点，准确率变化 "
            "{{diff smoothing 0.1 0 noisy accuracy}} 个百分点。标签无噪声时，校准误差变化 "
            "{{diff smoothing 0.1 0 clean calibration_error}} 个百分点，准确率变化 "
            "{{diff smoothing 0.1 0 clean accuracy}} 个百分点，负对数似然变化 {{diff smoothing 0.1 0 clean loss}} "
            "nat。",
        ),
    ),
    plots=(Plot("accuracy"), Plot("loss"), Plot("calibration_error")),
    sources=(
        Source(
            "Vaswani et al. 2017, Table 3",
            Bilingual(
                "Without smoothing, perplexity 4.67 instead of 4.92 (better) and 25.3 instead of 25.8 BLEU (worse).",
                "不平滑：困惑度 4.67（更好），BLEU 25.3（更差）；ε = 0.1：困惑度 4.92，BLEU 25.8。",
            ),
        ),
        Source(
            "Müller et al. 2019",
            Bilingual(
                "Smoothing improves the calibration of overconfident networks.", "标签平滑能改善过度自信的网络的校准。"
            ),
        ),
        Source(
            "Lukasik et al. 2020",
            Bilingual("Smoothing helps when labels are noisy.", "标签有噪声时，平滑有帮助。"),
        ),
    ),
    claims=(
        Claim(
            Bilingual("Label smoothing prevents overconfidence.", "标签平滑能避免模型过度自信。"),
            "half",
            Bilingual(
                "Where the model is overconfident, yes: with noisy labels the calibration error changes by "
                "{{diff smoothing 0.1 0 noisy calibration_error}} points. With clean labels it makes the model "
                "underconfident: mean confidence {{mean smoothing 0.1 clean confidence}} % at "
                "{{mean smoothing 0.1 clean accuracy}} % accuracy.",
                "模型确实过度自信时成立：有噪声时校准误差变化 {{diff smoothing 0.1 0 noisy calibration_error}} "
                "个百分点。标签无噪声时则变得信心不足：准确率 {{mean smoothing 0.1 clean accuracy}} %，"
                "平均置信度只有 {{mean smoothing 0.1 clean confidence}} %。",
            ),
        ),
        Claim(
            Bilingual(
                "With ε = 0.1 and five classes the target is 0.025, 0.025, 0.9, 0.025, 0.025.",
                "ε = 0.1、五个类时，目标是 0.025、0.025、0.9、0.025、0.025。",
            ),
            "holds",
            Bilingual(
                "In the definition of 2017, the right class gets {{mean smoothing 0.1 clean target}}. PyTorch's "
                "label_smoothing=0.1 gives it {{mean smoothing pytorch clean target}}; pass ε V/(V − 1) for the same targets.",
                "按 2017 年的定义，正确类为 {{mean smoothing 0.1 clean target}}。PyTorch 的 label_smoothing=0.1 给出 "
                "{{mean smoothing pytorch clean target}}；要得到同样的目标，应传入 ε V/(V − 1)。",
            ),
        ),
        Claim(
            Bilingual("Label smoothing improves every metric.", "标签平滑能提升所有指标。"),
            "wrong",
            Bilingual(
                "With clean labels, the negative log-likelihood changes by {{diff smoothing 0.1 0 clean loss}} nats: "
                "perplexity gets worse, as in the paper.",
                "标签无噪声时，负对数似然变化 {{diff smoothing 0.1 0 clean loss}} nat：困惑度变差，与论文一致。",
            ),
        ),
    ),
)
