"""Why layer norm, and not batch norm?"""

from dataclasses import replace
from functools import partial

from manyheads.lab.lab_tasks import Lookup
from manyheads.lab.norm_probes import future_change, neighbor_change, padding_change, statistics_change
from manyheads.lab.question import Answer, Arm, Claim, Comparison, Condition, Measure, Plot, Question, Source
from manyheads.lab.setup import Setup
from manyheads.lab.trial import train_model
from manyheads.lab.variants import with_batch_statistics
from manyheads.language import Bilingual

_SHORT, _LONG = (Lookup(n_keys=12, n_values=8, n_records=records) for records in ((2, 6), (12, 12)))
_percentage = partial(Measure, is_percentage=True)


def _trial(setup: Setup, seed: int) -> dict[str, float]:
    trained = train_model(setup, seed)
    batch = next(trained.test_batches(setup.n_rows))
    padded = next(replace(trained, setup=replace(setup, test_task=None)).test_batches(setup.n_rows))
    return {
        "accuracy": trained.test_scores()["accuracy"],
        "padding": padding_change(trained.model, padded),
        "training_padding": padding_change(trained.model, padded, is_training=True),
        "neighbors": neighbor_change(trained.model, batch),
        "drift": statistics_change(trained.model, batch),
        "future": future_change(setup, seed),
    }


NORM = Question(
    id="norm",
    title=Bilingual("Why layer norm, and not batch norm?", "为什么用层归一化，而不用批归一化？"),
    method=Bilingual(
        "Two pre-norm encoder layers of width 32 learn to look up a record by its key; sequences have two to six "
        "records and are padded. Only the norm differs. Batch sizes are 32 and 4; in the third condition the trained "
        "model is tested on twelve records without padding. The other measures compare outputs of the same text: "
        "with more padding, with other texts in the batch, in training and at inference, and in an untrained causal "
        "model with another last token. Changes are the length of the difference in percent of the length of the output; "
        "padding is added at inference, where batch norm uses stored statistics, unless the label says training.",
        "两层 Pre-Norm 编码器（宽度 32）学习按键查找；每个序列有 2 到 6 条记录，其余补齐。各组只有归一化方式不同。"
        "批大小取 32 和 4；第三种条件在测试时换成 12 条记录、没有填充。其余指标比较同一段文本的输出：多补一些填充、"
        "同批换上别的文本、训练与推理两种状态，以及在未训练的因果模型里改动最后一个词元。变化是差的长度占输出长度的百分比；"
        "除非注明训练，增加填充都在推理状态下进行，此时批归一化使用保存的统计量。",
    ),
    setup=Setup(
        model={
            "width": 32,
            "n_encoder_layers": 2,
            "feed_forward_width": 64,
            "n_heads": 4,
            "norm_placement": "pre",
            "positions": "none",
        },
        task=_SHORT,
        n_rows=32,
        steps=150,
        warmup=20,
    ),
    full={"steps": 1000},
    arms=(
        Arm("layer", Bilingual("layer norm (per token)", "层归一化（逐词元）"), {"model.norm": "layer"}),
        Arm("rms", Bilingual("RMSNorm (per token, no mean)", "RMSNorm（逐词元，不减均值）"), {"model.norm": "rms"}),
        Arm("sample", Bilingual("per-sample norm (n × d)", "逐样本归一化（n×d）"), {"model.norm": "sample"}),
        Arm("batch", Bilingual("batch norm without padding", "批归一化（不计填充）"), {"model.norm": "batch"}),
        Arm(
            "naive",
            Bilingual("batch norm with padding", "批归一化（连填充一起算）"),
            {"model.norm": "batch-with-padding"},
        ),
        Arm(
            "batch-at-test",
            Bilingual("batch norm, batch statistics at test too", "批归一化（测试时也用当前批的统计量）"),
            {"model.norm": "batch", "alter": with_batch_statistics},
        ),
    ),
    conditions=(
        Condition("batch-32", Bilingual("batches of 32", "批大小 32")),
        Condition("batch-4", Bilingual("batches of 4", "批大小 4"), {"n_rows": 4, "steps": 400}),
        Condition(
            "longer",
            Bilingual(
                "longer sequences at test",
                "测试时序列更长",
            ),
            {"test_task": _LONG},
        ),
    ),
    measures=(
        _percentage("accuracy", Bilingual("accuracy, %", "准确率 (%)"), "higher"),
        _percentage(
            "padding",
            Bilingual("change of the output when padding is added, %", "增加填充后输出的变化 (%)"),
            "lower",
        ),
        _percentage(
            "training_padding",
            Bilingual(
                "change of the output when padding is added, in training, %",
                "训练状态下增加填充后输出的变化 (%)",
            ),
            "lower",
        ),
        _percentage(
            "neighbors",
            Bilingual("change of the output when other texts share the batch, %", "同批有其他文本时输出的变化 (%)"),
            "lower",
        ),
        _percentage(
            "drift",
            Bilingual("change of the output from training to inference, %", "从训练状态到推理状态输出的变化 (%)"),
            "lower",
        ),
        _percentage(
            "future",
            Bilingual("change of earlier outputs when a later token changes, %", "改动后面的词元时前面输出的变化 (%)"),
            "lower",
            digits=4,
        ),
    ),
    tuned_on="accuracy",
    learning_rates=(4e-3, 1.2e-2),
    n_tuning_seeds=1,
    skipped=(("batch-at-test", "batch-4"), ("rms", "longer")),
    trial=_trial,
    comparisons=(
        Comparison(
            "batch",
            "layer",
            "accuracy",
            "same",
            condition="batch-32",
            margin=0.05,
            because=Bilingual(
                "hundreds of real tokens give stable statistics",
                "上百个真实词元的统计量足够稳定",
            ),
        ),
        Comparison(
            "batch",
            "layer",
            "accuracy",
            "lower",
            condition="batch-4",
            is_key=True,
            because=Bilingual("statistics of a few tokens are noise", "词元太少，统计量全是噪声"),
        ),
        Comparison(
            "batch",
            "layer",
            "drift",
            "higher",
            condition="batch-4",
            is_key=True,
            because=Bilingual("training sees its batch, inference an average", "训练用当前批，推理用滑动平均"),
        ),
        Comparison(
            "batch",
            "batch",
            "drift",
            "higher",
            condition="batch-4",
            against_condition="batch-32",
            because=Bilingual("fewer tokens, noisier statistics", "词元越少，统计量越不准"),
        ),
        Comparison(
            "naive",
            "batch",
            "training_padding",
            "higher",
            condition="batch-32",
            because=Bilingual("padding counts in the statistics", "填充也计入统计量"),
        ),
        Comparison(
            "naive",
            "batch",
            "accuracy",
            "lower",
            condition="longer",
            because=Bilingual("its statistics expect padding that is no longer there", "统计量里有填充，测试时却没有"),
        ),
        Comparison(
            "batch-at-test",
            "batch",
            "neighbors",
            "higher",
            condition="batch-32",
            because=Bilingual("neighbors are part of the statistics", "同批文本参与统计"),
        ),
        Comparison(
            "sample",
            "layer",
            "padding",
            "higher",
            condition="batch-32",
            is_key=True,
            because=Bilingual("padding is part of the sample", "填充也算在样本里"),
        ),
        Comparison(
            "sample",
            "layer",
            "future",
            "higher",
            condition="batch-32",
            is_key=True,
            because=Bilingual("later tokens are part of the sample", "后面的词元也算在样本里"),
        ),
        Comparison(
            "sample",
            "layer",
            "accuracy",
            "lower",
            condition="longer",
            because=Bilingual("its statistics change with the length", "统计量随长度变化"),
        ),
        Comparison(
            "rms",
            "layer",
            "accuracy",
            "same",
            condition="batch-32",
            margin=0.05,
            because=Bilingual("rescaling is what matters, not centering", "起作用的是缩放，不是减均值"),
        ),
    ),
    answer=Answer(
        yes=Bilingual(
            "Layer norm treats each token on its own, so its result depends neither on the batch nor on padding. "
            "Batch norm with padding excluded differs from it by {{diff norm batch layer batch-32 accuracy}} points "
            "of accuracy with batches of 32, and by {{diff norm batch layer batch-4 accuracy}} with batches of 4, "
            "where its outputs change by {{mean norm batch batch-4 drift}} % from training to inference. Per-sample "
            "norm changes an output by {{mean norm sample batch-32 padding}} % when padding is added.",
            "层归一化逐个词元计算，结果与同批的其他文本和填充都无关。不计填充的批归一化，准确率与层归一化相比："
            "批大小为 32 时相差 {{diff norm batch layer batch-32 accuracy}} 个百分点，批大小为 4 时相差 "
            "{{diff norm batch layer batch-4 accuracy}} 个百分点，此时从训练到推理，它的输出变动 "
            "{{mean norm batch batch-4 drift}} %。逐样本归一化只要多补填充，输出就变动 "
            "{{mean norm sample batch-32 padding}} %。",
        ),
        no=Bilingual(
            "Not all predictions held here. With batches of 4, batch norm without padding reaches "
            "{{mean norm batch batch-4 accuracy}} %, layer norm {{mean norm layer batch-4 accuracy}} %; the outputs "
            "of batch norm change by {{mean norm batch batch-4 drift}} % from training to inference. Per-sample norm "
            "changes an output by {{mean norm sample batch-32 padding}} % when padding is added, layer norm by "
            "{{mean norm layer batch-32 padding}} %.",
            "本次实验没有全部符合预测。批大小为 4 时，不计填充的批归一化准确率 {{mean norm batch batch-4 accuracy}} "
            "%，层归一化 {{mean norm layer batch-4 accuracy}} %；批归一化的输出从训练到推理变动 "
            "{{mean norm batch batch-4 drift}} %。多补填充时，逐样本归一化的输出变动 "
            "{{mean norm sample batch-32 padding}} %，层归一化变动 {{mean norm layer batch-32 padding}} %。",
        ),
    ),
    plots=(Plot("accuracy"), Plot("drift"), Plot("padding", conditions=("batch-32",))),
    sources=(
        Source(
            "Shen et al. 2020 (PowerNorm)",
            Bilingual(
                "Batch norm against layer norm: 34.4 v 35.5 BLEU on IWSLT14 and 28.1 v 29.5 on WMT14. They trace it to "
                "batch statistics of text that fluctuate throughout training.",
                "批归一化对层归一化：IWSLT14 上 34.4 对 35.5 BLEU，WMT14 上 28.1 对 29.5。他们认为原因是文本的批统计量"
                "在训练中波动很大。",
            ),
        ),
        Source(
            "Wang et al. 2022",
            Bilingual(
                "Batch norm is as good or better where the gap between its training and inference statistics is small.",
                "凡是训练与推理的统计量差距小的任务，批归一化不差于甚至好于层归一化。",
            ),
        ),
    ),
    claims=(
        Claim(
            Bilingual(
                "Layer norm normalizes all n × d values of a sample together.",
                "层归一化是对一个样本的全部 n×d 个值一起做归一化。",
            ),
            "wrong",
            Bilingual(
                "It normalizes the d values of each token. The n × d version changes a text's output by "
                "{{mean norm sample batch-32 padding}} % when padding is added (layer norm: "
                "{{mean norm layer batch-32 padding}} %), and in a causal model it changes earlier outputs by "
                "{{mean norm sample batch-32 future}} % when a later token changes (layer norm: "
                "{{mean norm layer batch-32 future}} %): it leaks the future.",
                "它对每个词元的 d 个值分别归一化。n×d 的做法在多补填充时输出变动 {{mean norm sample batch-32 padding}} %"
                "（层归一化 {{mean norm layer batch-32 padding}} %）；在因果模型里改动后面的词元，前面的输出变动 "
                "{{mean norm sample batch-32 future}} %（层归一化 {{mean norm layer batch-32 future}} %），等于泄露了未来。",
            ),
        ),
        Claim(
            Bilingual(
                "Batch norm cannot be applied to sequences of different lengths.",
                "序列长度可变，所以批归一化不适用。",
            ),
            "half",
            Bilingual(
                "It runs if padding is excluded, and with batches of 32 it is not clearly different from layer norm: "
                "{{diff norm batch layer batch-32 accuracy}} points. With batches of 4 it is worse "
                "({{diff norm batch layer batch-4 accuracy}} points), and its outputs change more from training to "
                "inference: by {{mean norm batch batch-4 drift}} % instead of {{mean norm batch batch-32 drift}} %.",
                "不计填充就能用，批大小为 32 时与层归一化没有明显差异：{{diff norm batch layer batch-32 accuracy}} "
                "个百分点。批大小为 4 时更差（{{diff norm batch layer batch-4 accuracy}} 个百分点），"
                "从训练到推理输出的变动也更大：{{mean norm batch batch-4 drift}} %，批大小为 32 时为 "
                "{{mean norm batch batch-32 drift}} %。",
            ),
        ),
        Claim(
            Bilingual(
                "Batch norm fails when texts at inference are longer than in training.",
                "推理时的句子比训练时长，批归一化就会失效。",
            ),
            "half",
            Bilingual(
                "Its statistics do shift: outputs change by {{mean norm batch longer drift}} % between training and "
                "inference on sequences twice as long ({{mean norm batch batch-32 drift}} % at the usual length). "
                "Yet accuracy is {{mean norm batch longer accuracy}} %, that of layer norm "
                "{{mean norm layer longer accuracy}} %. The difference of {{diff norm batch layer longer accuracy}} "
                "points is not clear.",
                "统计量确实会漂移：序列长一倍时，输出从训练到推理变动 {{mean norm batch longer drift}} "
                "%（长度不变时为 {{mean norm batch batch-32 drift}} %）。但准确率仍有 "
                "{{mean norm batch longer accuracy}} %，层归一化为 {{mean norm layer longer accuracy}} %，相差 "
                "{{diff norm batch layer longer accuracy}} 个百分点，并不明显。",
            ),
        ),
    ),
)
