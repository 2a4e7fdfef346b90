"""What does attention cost?"""

from manyheads.lab.operation_costs import OPERATIONS, measure_operation
from manyheads.lab.question import Answer, Arm, Claim, Comparison, Condition, Measure, Plot, Question, Source
from manyheads.lab.setup import Setup
from manyheads.language import Bilingual

_LABELS = {
    "explicit": Bilingual("attention, all weights stored", "注意力，保存全部权重"),
    "fused": Bilingual("attention, fused kernel", "注意力，融合算子"),
    "feed-forward": Bilingual("feed-forward network", "前馈网络"),
    "cached": Bilingual("generation with KV cache", "生成，有 KV 缓存"),
    "uncached": Bilingual("generation without KV cache", "生成，无 KV 缓存"),
}


def _trial(setup: Setup, seed: int) -> dict[str, float]:
    return measure_operation(setup.extra["operation"], setup.extra["n"], seed)


COST = Question(
    id="cost",
    title=Bilingual("What does attention cost?", "注意力的开销有多大？"),
    method=Bilingual(
        "One layer of width 64 with 4 heads and a feed-forward width of 256 runs on n tokens. Attention is computed with all "
        "weights stored, and by PyTorch's fused kernel. Generation of n tokens runs with and without KV cache. Time is "
        "processor time of one thread; memory is the largest tensor that any operation returned, for generation in the last "
        "step; floating-point operations are computed. Nothing is trained. Generation without cache is left out at n = 2048.",
        "一层模型，宽度 64，4 个头，前馈宽度 256，处理 n 个词元。注意力用两种算法：保存全部权重；用 PyTorch 的融合算子。"
        "另外在有、无 KV 缓存的情况下生成 n 个词元。时间是单线程的 CPU 时间；内存是各步运算返回的最大张量（生成时取最后一步）；"
        "浮点运算量由公式算出。不做训练。n = 2048 时不测无缓存的生成。",
    ),
    arms=tuple(Arm(name, _LABELS[name], {"extra.operation": name}) for name in OPERATIONS),
    conditions=tuple(
        Condition(str(n), Bilingual(f"n = {n}", f"n = {n}"), {"extra.n": n}) for n in (64, 256, 1024, 2048)
    ),
    skipped=(("uncached", "2048"),),
    measures=(
        Measure("milliseconds", Bilingual("milliseconds", "毫秒"), "lower", digits=2, is_logarithmic=True),
        Measure(
            "megabytes",
            Bilingual("largest tensor, MB", "最大的张量 (MB)"),
            "lower",
            digits=2,
            is_logarithmic=True,
        ),
        Measure(
            "gflops",
            Bilingual("floating-point operations, billions (computed)", "浮点运算量（十亿次，计算值）"),
            "lower",
            digits=4,
            is_logarithmic=True,
        ),
    ),
    trial=_trial,
    measures_time=True,
    comparisons=(
        Comparison(
            "explicit",
            "feed-forward",
            "milliseconds",
            "higher",
            condition="2048",
            is_key=True,
            because=Bilingual("n² terms outgrow n terms", "n² 项终将超过 n 项"),
        ),
        Comparison(
            "explicit",
            "feed-forward",
            "milliseconds",
            "lower",
            condition="64",
            because=Bilingual("short texts need fewer operations in attention", "文本短时注意力运算量更小"),
        ),
        Comparison(
            "explicit",
            "feed-forward",
            "gflops",
            "lower",
            condition="64",
            because=Bilingual("8nd² + 4n²d is less than 16nd² for n < 2d", "n < 2d 时，8nd² + 4n²d 小于 16nd²"),
        ),
        Comparison(
            "explicit",
            "explicit",
            "megabytes",
            "higher",
            condition="2048",
            against_condition="1024",
            because=Bilingual("the matrix of weights has n² entries", "权重矩阵有 n² 个元素"),
        ),
        Comparison(
            "fused",
            "explicit",
            "megabytes",
            "lower",
            condition="2048",
            is_key=True,
            because=Bilingual("the fused kernel works in blocks", "融合算子分块计算"),
        ),
        Comparison(
            "fused",
            "explicit",
            "milliseconds",
            "lower",
            condition="2048",
            because=Bilingual("fewer passes through memory", "读写内存的次数更少"),
        ),
        Comparison(
            "uncached",
            "cached",
            "milliseconds",
            "higher",
            condition="1024",
            is_key=True,
            because=Bilingual("without cache every token is computed again", "没有缓存，每一步都要重算所有词元"),
        ),
        Comparison(
            "uncached",
            "cached",
            "milliseconds",
            "higher",
            condition="64",
            because=Bilingual("the same, at a short length", "同上，短序列"),
        ),
    ),
    answer=Answer(
        yes=Bilingual(
            "Its operations and its matrix of weights grow with the square of the length n. From n = 1024 to 2048, "
            "attention with stored weights needs {{ratio cost explicit@2048 explicit@1024 2048 gflops}} times the "
            "operations, its matrix is {{ratio cost explicit@2048 explicit@1024 2048 megabytes}} times as large, and "
            "its time changes by {{diff cost explicit@2048 explicit@1024 2048 milliseconds}}; the time of the "
            "feed-forward network changes by {{diff cost feed-forward@2048 feed-forward@1024 2048 milliseconds}}. "
            "The fused kernel avoids the memory ({{mean cost fused 2048 megabytes}} instead of "
            "{{mean cost explicit 2048 megabytes}} MB), not the operations. Without a KV cache, generating 1024 "
            "tokens takes {{ratio cost uncached cached 1024 milliseconds}} times as long.",
            "运算量和权重矩阵都随长度 n 的平方增长。n 从 1024 增到 2048，保存权重的注意力运算量变为 "
            "{{ratio cost explicit@2048 explicit@1024 2048 gflops}} 倍，矩阵变为 "
            "{{ratio cost explicit@2048 explicit@1024 2048 megabytes}} 倍，用时 "
            "{{diff cost explicit@2048 explicit@1024 2048 milliseconds}}；前馈网络用时 "
            "{{diff cost feed-forward@2048 feed-forward@1024 2048 milliseconds}}。"
            "融合算子省的是内存（{{mean cost fused 2048 megabytes}} MB，原来 {{mean cost explicit 2048 megabytes}} "
            "MB），运算量不变。生成 1024 个词元，无 KV 缓存的用时是有缓存的 "
            "{{ratio cost uncached cached 1024 milliseconds}} 倍。",
        ),
        no=Bilingual(
            "Not all predictions held on this machine. At n = 2048, attention with stored weights takes "
            "{{mean cost explicit 2048 milliseconds}} ms, fused {{mean cost fused 2048 milliseconds}} ms, the "
            "feed-forward network {{mean cost feed-forward 2048 milliseconds}} ms; generating 1024 tokens takes "
            "{{mean cost cached 1024 milliseconds}} ms with and {{mean cost uncached 1024 milliseconds}} ms without "
            "cache.",
            "在这台机器上没有全部符合预测。n = 2048 时，保存权重的注意力用时 "
            "{{mean cost explicit 2048 milliseconds}} 毫秒，融合算子 {{mean cost fused 2048 milliseconds}} 毫秒，"
            "前馈网络 {{mean cost feed-forward 2048 milliseconds}} 毫秒；生成 1024 个词元，有缓存 "
            "{{mean cost cached 1024 milliseconds}} 毫秒，无缓存 {{mean cost uncached 1024 milliseconds}} 毫秒。",
        ),
    ),
    plots=(Plot("milliseconds", "lines"), Plot("megabytes", "lines"), Plot("gflops", "lines")),
    sources=(
        Source(
            "Vaswani et al. 2017, Table 1",
            Bilingual(
                "Self-attention: O(n²·d) operations per layer; a recurrent layer: O(n·d²).",
                "自注意力每层 O(n²·d) 次运算，循环层 O(n·d²)。",
            ),
        ),
        Source(
            "Dao et al. 2022 (FlashAttention)",
            Bilingual(
                "Exact attention with memory linear in n, because the matrix of weights is never stored.",
                "不保存权重矩阵，精确计算注意力，内存与 n 成线性关系。",
            ),
        ),
    ),
    claims=(
        Claim(
            Bilingual("Attention is the expensive part of a Transformer.", "Transformer 中最耗时的是注意力。"),
            "half",
            Bilingual(
                "Computed operations at n = 64: attention {{mean cost explicit 64 gflops}} billion, feed-forward "
                "network {{mean cost feed-forward 64 gflops}} billion. At n = 2048: "
                "{{mean cost explicit 2048 gflops}} and {{mean cost feed-forward 2048 gflops}}. With a feed-forward "
                "width of 4d, they are equal at n = 2d. Time is another matter: attention takes "
                "{{ratio cost explicit feed-forward 64 milliseconds}} times as long as the feed-forward network even "
                "at n = 64, contrary to the prediction, perhaps because it consists of many small operations.",
                "按公式计算，n = 64 时注意力 {{mean cost explicit 64 gflops}}，前馈网络 "
                "{{mean cost feed-forward 64 gflops}}（十亿次）；n = 2048 时为 {{mean cost explicit 2048 gflops}} 和 "
                "{{mean cost feed-forward 2048 gflops}}。前馈宽度为 4d 时，两者在 n = 2d 处相等。但时间不然：n = 64 "
                "时注意力用时已是前馈网络的 {{ratio cost explicit feed-forward 64 milliseconds}} 倍，与预测相反，"
                "可能因为它由许多小运算组成。",
            ),
        ),
        Claim(
            Bilingual("A KV cache makes generation linear in n.", "有了 KV 缓存，生成的开销就与 n 成线性关系。"),
            "half",
            Bilingual(
                "Each new token still attends to all earlier ones, so the operations grow with n²: "
                "{{ratio cost cached@2048 cached@1024 - gflops}} times as many from n = 1024 to 2048. Without cache they grow with "
                "n³: {{ratio cost uncached@1024 uncached@256 - gflops}} times as many from n = 256 to 1024.",
                "每个新词元仍要关注之前所有的词元，运算量随 n² 增长：n 从 1024 到 2048 变为 "
                "{{ratio cost cached@2048 cached@1024 - gflops}} 倍。没有缓存则随 n³ 增长：n 从 256 到 1024 变为 "
                "{{ratio cost uncached@1024 uncached@256 - gflops}} 倍。",
            ),
        ),
        Claim(
            Bilingual("Flash attention makes attention O(n).", "FlashAttention 把注意力变成了 O(n)。"),
            "wrong",
            Bilingual(
                "Its memory, not its time: from n = 1024 to 2048 the fused kernel's largest tensor grows "
                "{{ratio cost fused@2048 fused@1024 - megabytes}} times, its time "
                "{{ratio cost fused@2048 fused@1024 - milliseconds}} times.",
                "是内存，不是时间：n 从 1024 到 2048，融合算子的最大张量变为 "
                "{{ratio cost fused@2048 fused@1024 - megabytes}} 倍，时间变为 "
                "{{ratio cost fused@2048 fused@1024 - milliseconds}} 倍。",
            ),
        ),
    ),
)
