"""Can heads share keys and values?"""

from manyheads.lab.head_roles import head_differences
from manyheads.lab.lab_tasks import Lookup, Text
from manyheads.lab.probes import cache_bytes
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
from manyheads.lab.trial import count_parameters, train_model
from manyheads.language import Bilingual


def _trial(setup: Setup, seed: int) -> dict[str, float]:
    trained = train_model(setup, seed)
    return {
        **trained.test_scores(),
        "divergence": head_differences(trained).divergence,
        "cache": cache_bytes(trained.model),
        "parameters": count_parameters(trained.model),
    }


KV_SHARE = Question(
    id="kv-share",
    title=Bilingual("Can heads share keys and values (MQA, GQA)?", "多个头能否共用键和值（MQA、GQA）？"),
    method=Bilingual(
        "Eight heads have keys and values of their own (MHA), share them in groups of four (GQA), or share one set (MQA). "
        "One layer looks up two records at once; two layers predict the next word of short English sentences. One arm with "
        "MQA has feed-forward networks that are larger by the parameters it saves.",
        "八个头各有自己的键和值（MHA），或四个头一组共用（GQA），或全部共用一份（MQA）。单层模型同时查找两条记录；"
        "两层模型预测英文短句的下一个词。另有一组 MQA 把省下的参数加到前馈网络中。",
    ),
    setup=Setup(
        model={
            "width": 64,
            "n_encoder_layers": 1,
            "n_decoder_layers": 2,
            "feed_forward_width": 256,
            "n_heads": 8,
            "norm_placement": "pre",
        },
        task=Lookup(n_keys=8, n_values=8, n_lookups=2),
        steps=400,
    ),
    full={"steps": 2000},
    arms=(
        Arm("mha", Bilingual("MHA: 8 sets", "MHA：8 份")),
        Arm("gqa", Bilingual("GQA: 2 sets", "GQA：2 份"), {"model.n_key_heads": 2}),
        Arm("mqa", Bilingual("MQA: 1 set", "MQA：1 份"), {"model.n_key_heads": 1}),
        Arm(
            "matched",
            Bilingual("MQA, larger feed-forward", "MQA，前馈网络更大"),
            {"model.n_key_heads": 1, "model.feed_forward_width": 312},
        ),
    ),
    conditions=(
        Condition("two", Bilingual("two lookups", "查找两条记录")),
        Condition("text", Bilingual("next word", "预测下一个词"), {"task": Text("causal"), "steps": 150, "n_rows": 32}),
    ),
    skipped=(("matched", "text"),),
    measures=(
        ACCURACY,
        LOSS,
        Measure(
            "divergence",
            Bilingual("Jensen–Shannon divergence between heads, bits", "头与头之间的 JS 散度 (bit)"),
        ),
        Measure(
            "cache",
            Bilingual("KV cache per token and layer at 16 bits, bytes", "每层每个词元的 KV 缓存（16 位，字节）"),
            "lower",
            digits=0,
        ),
        Measure("parameters", Bilingual("parameters", "参数量"), digits=0),
    ),
    tuned_on="loss",
    learning_rates=(3e-3, 1e-2),
    n_tuning_seeds=1,
    trial=_trial,
    comparisons=(
        Comparison(
            "mqa",
            "mha",
            "accuracy",
            "lower",
            condition="two",
            is_key=True,
            because=Bilingual("one key of width 8 serves all heads", "所有头只有一个宽度为 8 的键可用"),
        ),
        Comparison(
            "gqa",
            "mqa",
            "accuracy",
            "higher",
            condition="two",
            because=Bilingual("two sets of keys can describe records in two ways", "两份键可以从两方面描述记录"),
        ),
        Comparison(
            "matched",
            "mha",
            "accuracy",
            "lower",
            condition="two",
            because=Bilingual("the saved parameters are missing in the keys", "省掉的参数正是键所需要的"),
        ),
        Comparison(
            "mqa",
            "mha",
            "loss",
            "same",
            condition="text",
            margin=0.05,
            is_key=True,
            because=Bilingual("on text, publications report minor losses", "文献报告：在文本上损失很小"),
        ),
        Comparison(
            "gqa",
            "mha",
            "loss",
            "same",
            condition="text",
            margin=0.05,
            because=Bilingual("on text, publications report quality close to MHA", "文献报告：在文本上与 MHA 接近"),
        ),
    ),
    answer=Answer(
        yes=Bilingual(
            "Yes: the KV cache gets up to {{ratio kv-share mha mqa text cache}} times smaller, at little cost on "
            "short sentences. It takes {{mean kv-share mha text cache}} bytes per token and layer with MHA, "
            "{{mean kv-share gqa text cache}} with GQA and {{mean kv-share mqa text cache}} with MQA, which changes "
            "the loss by {{diff kv-share mqa mha text loss}} nats. With two records to find, accuracy changes by "
            "{{diff kv-share mqa mha two accuracy}} points with MQA and by {{diff kv-share gqa mha two accuracy}} "
            "with GQA.",
            "可以：KV 缓存最多缩小到 1/{{ratio kv-share mha mqa text cache}}，在短句上代价很小。每层每个词元，MHA 为 "
            "{{mean kv-share mha text cache}} 字节，GQA 为 {{mean kv-share gqa text cache}}，MQA 为 "
            "{{mean kv-share mqa text cache}}，MQA 使损失变化 {{diff kv-share mqa mha text loss}} nat。查两条记录时，"
            "准确率的变化是：MQA {{diff kv-share mqa mha two accuracy}} 个百分点，GQA "
            "{{diff kv-share gqa mha two accuracy}} 个百分点。",
        ),
        no=Bilingual(
            "Yes: the KV cache gets up to {{ratio kv-share mha mqa text cache}} times smaller, but the cost in "
            "quality was not as predicted here. It takes {{mean kv-share mha text cache}} bytes per token and layer "
            "with MHA, {{mean kv-share gqa text cache}} with GQA and {{mean kv-share mqa text cache}} with MQA. On "
            "short sentences, the loss changes by {{diff kv-share mqa mha text loss}} nats with MQA and by "
            "{{diff kv-share gqa mha text loss}} with GQA; with two records to find, MQA changes the accuracy by "
            "{{diff kv-share mqa mha two accuracy}} points.",
            "可以：KV 缓存最多缩小到 1/{{ratio kv-share mha mqa text cache}}，但质量上的代价与预测不完全一致。"
            "每层每个词元，MHA 为 {{mean kv-share mha text cache}} 字节，GQA 为 {{mean kv-share gqa text cache}}，"
            "MQA 为 {{mean kv-share mqa text cache}}。在短句上，MQA 使损失变化 {{diff kv-share mqa mha text loss}} "
            "nat，GQA 变化 {{diff kv-share gqa mha text loss}} nat；查两条记录时，MQA 使准确率变化 "
            "{{diff kv-share mqa mha two accuracy}} 个百分点。",
        ),
    ),
    plots=(
        Plot("accuracy", conditions=("two",)),
        Plot("loss", conditions=("text",)),
        Plot("cache", conditions=("text",)),
    ),
    sources=(
        Source(
            "Shazeer 2019",
            Bilingual(
                "Introduces MQA; on WMT 2014 English–German it decodes much faster with minor loss of quality.",
                "提出 MQA；在 WMT 2014 英德翻译上解码快得多，质量略有下降。",
            ),
        ),
        Source(
            "Ainslie et al. 2023",
            Bilingual(
                "Introduces GQA: quality close to MHA, almost as fast as MQA.",
                "提出 GQA：质量接近 MHA，速度接近 MQA。",
            ),
        ),
    ),
    claims=(
        Claim(
            Bilingual(
                "With MQA, all heads attend to the same tokens.",
                "MQA 中所有头看的是同样的词元。",
            ),
            "wrong",
            Bilingual(
                "Heads share keys but keep queries of their own. With two records to find, two heads of MQA differ by "
                "{{mean kv-share mqa two divergence}} bits (0: same weights, 1: no common key), those of MHA by "
                "{{mean kv-share mha two divergence}}.",
                "各头共用键，但仍有各自的查询。查两条记录时，MQA 两个头之间的 JS 散度为 {{mean kv-share mqa two divergence}} bit"
                "（0 表示权重相同，1 表示没有共同的键），MHA 为 {{mean kv-share mha two divergence}} bit。",
            ),
        ),
        Claim(
            Bilingual("Sharing keys and values costs no quality.", "共用键和值不损失质量。"),
            "wrong",
            Bilingual(
                "On short sentences, it costs little, but more than we predicted: the loss changes by "
                "{{diff kv-share mqa mha text loss}} nats with MQA and by {{diff kv-share gqa mha text loss}} with "
                "GQA. With two records to find, no difference is clear after Holm's correction: "
                "{{diff kv-share mqa mha two accuracy}} points with MQA, {{diff kv-share matched mha two accuracy}} "
                "with the saved parameters put elsewhere.",
                "在短句上代价不大，但超出我们的预测：MQA 使损失变化 {{diff kv-share mqa mha text loss}} nat，GQA "
                "变化 {{diff kv-share gqa mha text loss}} nat。查两条记录时，经 Holm 校正后没有明显差异：MQA "
                "{{diff kv-share mqa mha two accuracy}} 个百分点，参数补足后 "
                "{{diff kv-share matched mha two accuracy}} 个百分点。",
            ),
        ),
    ),
)
