"""The explanations of `manyheads walk`, in English and Chinese."""

from manyheads.language import Bilingual

UNTRAINED = Bilingual(
    "Untrained: random weights of a fixed seed. The arithmetic is real, the attention pattern has no meaning.",
    "未训练：权重是固定种子的随机数。计算是真实的，但注意力的分布没有任何意义。",
)
ANSWER_IS_TEXT = Bilingual(
    "The decoder reads <s> and then the words written so far. Without --answer it writes the sentence itself.",
    "解码器先读 <s>，再读已写出的词；不给 --answer 时，写的就是这句话本身。",
)

TOKENS = Bilingual(
    "Each position is a token of the tokenizer; ▁ is a space, <s> is BOS, </s> is EOS.",
    "每个位置是分词器切出的一个子词；▁ 是空格，<s> 是句首标记，</s> 是句尾标记。",
)

INPUTS_WORKED = Bilingual("Three positions with three numbers each.", "三个位置，每个位置三个数。")
INPUTS_EMBEDDED = Bilingual(
    "√d_model × the word embedding + the position encoding. Positions are added once, before the heads.",
    "√d_model × 词向量 + 位置编码。位置只在进入各个头之前加一次，不在头内部加。",
)
INPUTS_CROSS = Bilingual(
    "Queries come from the decoder, keys and values from the output of the encoder.",
    "查询来自解码器，键和值来自编码器的输出。",
)
INPUTS_LAYER = Bilingual("The input of this attention, one row per position.", "进入这一注意力的输入，每个位置一行。")

ROLES = Bilingual(
    "Each position has a query q (what it searches), a key k (what it matches) and a value v (what it contributes).",
    "每个位置有三个向量：查询 q（要找什么）、键 k（凭什么被匹配）、值 v（贡献什么）。",
)
OWN_COLUMNS = Bilingual(
    "Every head has its own columns of W^Q, W^K and W^V; these belong to this head.",
    "每个头在 W^Q、W^K、W^V 中各有自己的列；这里是这个头的。",
)
NO_PROJECTIONS = Bilingual(
    "This model has no projections: each head reads its own part of x.",
    "此模型没有投影矩阵：每个头直接读取 x 中属于自己的部分。",
)
ROTATED = Bilingual(
    "Rotary positions rotate each pair of numbers of q and k by an angle that grows with the position.",
    "旋转位置编码把 q、k 的每一对分量旋转一个随位置增大的角度。",
)

MATCHING = Bilingual(
    "How well does the query match each key? Multiply element by element and add up (dot product).",
    "查询与每个键有多匹配？逐元素相乘再相加（点积）。",
)
OTHER_FORMS = {
    "cosine": Bilingual(
        "Only directions count: q and k are normalized to length 1 before the product.",
        "只看方向：先把 q 和 k 归一化为长度 1，再求点积。",
    ),
    "bilinear": Bilingual(
        "Each head has a matrix between query and key: q W k.",
        "每个头在查询与键之间有一个自己的矩阵：q W k。",
    ),
    "additive": Bilingual(
        "This score is not a dot product: each term is w × tanh(q + k).",
        "这里的分数不是点积：每一项是 w × tanh(q + k)。",
    ),
    "dense-synthesizer": Bilingual(
        "There are no keys: the query alone gives a score to each position.",
        "这里没有键：直接由查询给每个位置打分。",
    ),
    "random-synthesizer": Bilingual(
        "There are no queries and keys: all sentences share one learned table of scores.",
        "这里没有查询也没有键：所有句子共用一张学到的分数表。",
    ),
}
ITSELF = Bilingual("The keys include the position of the query itself.", "键中也包括查询自身的位置。")

WHY_DIVIDE = Bilingual(
    "Why divide? If the numbers of q and k are independent, with mean 0 and variance 1, a sum of d_k products has a "
    "standard deviation of √d_k; divided by √d_k, of 1. Large scores saturate the softmax: see the last step.",
    "为什么要除？若 q、k 的各个分量独立、均值为 0、方差为 1，则点积的标准差是 √d_k，除以 √d_k 就是 1。"
    "分数太大，softmax 会饱和（见最后一步）。",
)
LEARNED_SCALE = Bilingual("Each head learns the scale of its cosine.", "每个头自己学习把余弦放大多少。")
NO_SCALE = Bilingual("This score has no scale.", "这种打分方式没有缩放。")

ALIBI = Bilingual(
    "ALiBi first subtracts distance × slope, with a slope for each head.", "ALiBi 先按距离 × 该头的斜率降低分数。"
)
NOTHING_HIDDEN = Bilingual(
    "Nothing is masked: every query sees every key. (In a batch, padding is masked.)",
    "这里没有掩码：每个查询都能看到所有的键。（成批计算时会掩去填充位置。）",
)
HINT_CAUSAL = Bilingual("To see a causal mask, add --layer decoder.0.self", "想看因果掩码，加上 --layer decoder.0.self")
CAUSAL = Bilingual(
    "A decoder does not see tokens that are not written yet: each position sees itself and earlier positions.",
    "解码器看不到还没写出的词：每个位置只看得到自己和前面的位置。",
)
WHY_BEFORE = Bilingual(
    "Why before the softmax? A masked score becomes -∞, e^-∞ = 0, and the row still sums to 1. If the weights were "
    "zeroed after the softmax, the row would sum to less than 1, and masked keys would still count in the denominator.",
    "为什么在 softmax 之前？被掩去的分数变成 -∞，e^-∞ = 0，其余权重之和仍是 1。若在 softmax 之后才置零，"
    "和就小于 1，而且被掩去的键已经影响了分母。",
)

SOFTMAX = Bilingual(
    "e^score is positive; divided by their sum, the weights of a row sum to 1. The largest score of the row is "
    "subtracted first: the quotient is the same, and nothing overflows.",
    "e 的幂都是正数；除以总和，一行的权重之和就是 1。先减去这一行最大的分数：商不变，但不会溢出。",
)
UNDERFLOW = Bilingual("0: too small to be represented.", "0：小到浮点数只能表示为 0。")

ALL_ROWS = Bilingual(
    "The same for every query: rows are queries, columns are keys. Each row of each head sums to 1.",
    "每个查询都这样计算：行是查询，列是键。每个头的每一行之和为 1。",
)
NOT_A_THIRD = Bilingual(
    "Saturated: in every row one key has all the weight, since the scores differ by thousands. Some lecture notes "
    "print 0.33 everywhere; that is a mistake.",
    "饱和：每一行都是一个键独占全部权重，因为各个分数相差好几千。有的讲义在这里写成处处 0.33，那是算错了。",
)

WEIGHTED_SUM = Bilingual(
    "The output of the head: each value times its weight, added up.", "这个头的输出：每个值乘以它的权重，再相加。"
)

CONCAT = Bilingual(
    "All heads are concatenated and multiplied by W^O: a fixed linear combination, the same for every sentence.",
    "各个头并排（Concat），再乘 W^O：对各头的固定线性组合，与句子无关。",
)
NO_OUTPUT = Bilingual(
    "There is no W^O: the output is the concatenation itself.", "这里没有 W^O：输出就是 Concat 本身。"
)
HEAD_BY_HEAD = Bilingual(
    "This equals the sum over heads: output = Σ head_i W_i^O.", "也等于各头贡献之和：output = Σ head_i W_i^O。"
)

WITHOUT_SCALE = Bilingual(
    "The right half shows the same row without the scale. The slope of a weight is its derivative by q·k: "
    "w(1-w)/√d_k, or w(1-w) without the scale. Gradients are multiplied by it: where it is 0, nothing is learned "
    "from that pair.",
    "右边是同一行不除以 √d_k 的结果。斜率是权重对 q·k 的导数：w(1-w)/√d_k，不除则为 w(1-w)。"
    "梯度要乘上它：它为 0 时，从这一对什么也学不到。",
)
NO_CONTRAST = Bilingual("This score has no √d_k.", "这种打分方式没有 √d_k。")
NO_HELP = Bilingual(
    "Dividing by √3 does not help here: the inputs are too large. In a model, layer norm keeps them near 1.",
    "这里 √3 也无济于事：输入太大。在真正的模型里，层归一化使输入保持在 1 左右。",
)
WIDER = Bilingual(
    "The effect of d_k: q and k drawn from N(0, 1), 10 keys, medians over 1,000 draws.",
    "d_k 变大时会怎样：q、k 取 N(0, 1) 随机数，10 个键，抽 1000 次，取中位数。",
)
VANISHES = Bilingual(
    "Without the scale, the standard deviation of scores grows as √d_k, one key gets all the weight, and the median "
    "slope vanishes. The mean slope is larger than with the scale: few pairs get large gradients, most get none.",
    "不除 √d_k，分数的标准差随 √d_k 增大，一个键独占权重，斜率的中位数趋于 0。平均值反而比除了的更大："
    "少数几对的梯度很大，多数几乎没有。",
)

TITLES = (
    Bilingual("Inputs", "输入"),
    Bilingual("Projections   x W^Q, x W^K, x W^V", "投影   x W^Q, x W^K, x W^V"),
    Bilingual("Products   q·k", "点积   q·k"),
    Bilingual("Scale   ÷ √d_k", "缩放   ÷ √d_k"),
    Bilingual("Mask", "掩码"),
    Bilingual("Softmax", "Softmax"),
    Bilingual("All weights", "全部权重"),
    Bilingual("Weighted sum   weights · V", "加权求和   权重 · V"),
    Bilingual("Concat and W^O", "拼接与 W^O"),
    Bilingual("Without √d_k", "如果不除以 √d_k"),
)
