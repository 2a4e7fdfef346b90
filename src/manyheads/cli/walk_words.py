"""What `manyheads walk` says beside its numbers, in English and 中文: why each step is there."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Bilingual:
    """The same in both languages."""

    english: str
    chinese: str


UNTRAINED = Bilingual(
    "Untrained: random weights of a fixed seed. The arithmetic is real, the pattern has no meaning.",
    "未训练：权重是固定种子的随机数。算法是真的，图案没有任何意义。",
)
ANSWER_IS_TEXT = Bilingual(
    "The decoder reads <s> and then the words written so far; without --answer it writes the sentence itself.",
    "解码器先读 <s>，再读已写出的词；不给 --answer 时，写的就是这句话本身。",
)

TOKENS = Bilingual(
    "A place is a token of text, as the tokenizer cuts it; ▁ is a space, <s> the beginning, </s> the end.",
    "每个位置是分词器切出的一个片段；▁ 是空格，<s> 是开头，</s> 是结尾。",
)

INPUTS_WORKED = Bilingual("Three places, three numbers each.", "三个位置，每个位置三个数。")
INPUTS_EMBEDDED = Bilingual(
    "√d_model × the word's vector + the vector of its position: positions are added here, once, not inside the heads.",
    "√d_model × 词向量 + 位置向量：位置在进入各个头之前就加上了，而不是放进头里。",
)
INPUTS_CROSS = Bilingual(
    "Queries come from the decoder, keys and values from the encoder's output.",
    "查询来自解码器，键和值来自编码器的输出。",
)
INPUTS_LAYER = Bilingual("What enters this attention, a row a place.", "进入这一注意力的输入，每个位置一行。")

ROLES = Bilingual(
    "Three roles for every place: q asks, k is what it is found by, v is what it gives.",
    "每个位置有三种角色：q 提问，k 供人匹配，v 是交出的内容。",
)
OWN_COLUMNS = Bilingual(
    "Every head has columns of its own in W^Q, W^K and W^V; these are this head's.",
    "每个头在 W^Q、W^K、W^V 中各有自己的列；这里是这个头的。",
)
NO_PROJECTIONS = Bilingual(
    "This model has no projections: a head takes its own numbers of x.",
    "此模型没有投影矩阵：每个头直接取 x 中属于自己的那几个数。",
)
ROTATED = Bilingual(
    "Rotary positions turn each pair of numbers of q and k by an angle that grows with the place.",
    "旋转位置编码把 q、k 的每一对数转过一个随位置增大的角度。",
)

MATCHING = Bilingual(
    "How well does the query match each key? Multiply number by number, add up.",
    "查询与每个键有多匹配？逐个相乘，再相加（点积）。",
)
OTHER_FORMS = {
    "cosine": Bilingual(
        "Only directions count: q and k are made as long as 1, then multiplied.",
        "只看方向：先把 q 和 k 的长度变成 1，再相乘。",
    ),
    "bilinear": Bilingual(
        "A matrix of the head's own stands between query and key: q W k.",
        "查询与键之间隔着这个头自己的一个矩阵：q W k。",
    ),
    "additive": Bilingual(
        "Here a score is not a product: each term is w × tanh(q + k).",
        "这里的分数不是点积：每一项是 w × tanh(q + k)。",
    ),
    "dense-synthesizer": Bilingual(
        "No keys here: each place gets a score straight from the query.",
        "这里没有键：直接由查询给每个位置打分。",
    ),
    "random-synthesizer": Bilingual(
        "No queries and no keys here: one learned table of scores for all sentences.",
        "这里没有查询也没有键：所有句子共用一张学到的分数表。",
    ),
}
ITSELF = Bilingual("The place itself is among the keys.", "自己也在被看的位置之中。")

WHY_DIVIDE = Bilingual(
    "Why divide? If the numbers of q and k are independent, with mean 0 and variance 1, a sum of d_k products has a "
    "standard deviation of √d_k; divided by √d_k, of 1. Large scores saturate the softmax: see the last step.",
    "为什么要除？若 q、k 的各个分量独立、均值为 0、方差为 1，则点积的标准差是 √d_k，除以 √d_k 就是 1。"
    "分数太大，softmax 会饱和（见最后一步）。",
)
LEARNED_SCALE = Bilingual("Each head learns how much to stretch a cosine.", "每个头自己学习把余弦放大多少。")
NO_SCALE = Bilingual("This form of score has no scale.", "这种打分方式没有缩放。")

ALIBI = Bilingual(
    "First, ALiBi lowers a score by distance × the head's slope.", "ALiBi 先按距离 × 该头的斜率降低分数。"
)
NOTHING_HIDDEN = Bilingual(
    "Nothing is hidden here: every query may see every key. (In a batch, padding would be hidden.)",
    "这里没有遮挡：每个查询都能看到所有的键。（成批计算时，填充位置会被遮住。）",
)
HINT_CAUSAL = Bilingual("To see a causal mask, add --layer decoder.0.self", "想看因果掩码，加上 --layer decoder.0.self")
CAUSAL = Bilingual(
    "A decoder may not see what is not written yet: each place sees itself and those before it.",
    "解码器看不到还没写出的词：每个位置只看得到自己和前面的位置。",
)
WHY_BEFORE = Bilingual(
    "Why before the softmax? A hidden score becomes -∞, e^-∞ = 0, and the row still sums to 1. Zeroed after it, the "
    "row would sum to less, and what is hidden would still have counted in the sum.",
    "为什么在 softmax 之前？被遮住的分数变成 -∞，e^-∞ = 0，其余权重之和仍是 1。若在 softmax 之后才置零，"
    "和就小于 1，而且被遮住的位置已经影响了分母。",
)

SOFTMAX = Bilingual(
    "e^score is positive; divided by their sum, the weights of a row sum to 1. The row's largest score is subtracted "
    "first: the same quotient, but nothing overflows.",
    "e 的幂都是正数；除以总和，一行的权重之和就是 1。先减去这一行最大的分数：商不变，但不会溢出。",
)
UNDERFLOW = Bilingual("0: too small for the computer to hold.", "0：小到计算机只能记作 0。")

ALL_ROWS = Bilingual(
    "The same for every query: a row is who looks, a column whom it looks at. Each row of each head sums to 1; all "
    "heads together do not.",
    "每个查询都这样算：行是谁在看，列是看谁。每个头的每一行之和为 1；各个头合起来并不是 1。",
)
NOT_A_THIRD = Bilingual(
    "Saturated: in every row one key has all the weight, since the scores lie thousands apart. Some notes print 0.33 "
    "everywhere here; that is a mistake.",
    "饱和：每一行都是一个键独占全部权重，因为各个分数相差好几千。有的讲义在这里写成处处 0.33，那是算错了。",
)

MIX = Bilingual(
    "The head's output: every value times its weight, added up.", "这个头的输出：每个值乘以它的权重，再相加。"
)

CONCAT = Bilingual(
    "All heads side by side (Concat), times W^O: a fixed linear sum of heads, the same for every sentence.",
    "各个头并排（Concat），再乘 W^O：对各头的固定线性组合，与句子无关。",
)
NO_OUTPUT = Bilingual("There is no W^O here: the output is Concat itself.", "这里没有 W^O：输出就是 Concat 本身。")
HEAD_BY_HEAD = Bilingual(
    "The same head by head: output = Σ head_i W_i^O.", "也等于各头贡献之和：output = Σ head_i W_i^O。"
)

WITHOUT_SCALE = Bilingual(
    "Beside it, the same row without the scale. A weight's slope is how much it moves when its q·k moves a little: "
    "w(1-w)/√d_k, or w(1-w) without. Gradients are multiplied by it: where it is 0, nothing is learnt from that pair.",
    "右边是同一行不除 √d_k 的结果。斜率是 q·k 稍变时权重变多少：w(1-w)/√d_k，不除则为 w(1-w)。"
    "梯度要乘上它：它为 0 时，从这一对什么也学不到。",
)
NO_CONTRAST = Bilingual("This form of score has no √d_k to leave out.", "这种打分方式没有可以去掉的 √d_k。")
NO_HELP = Bilingual(
    "√3 cannot help here: the inputs are too large. In a model, layer norm keeps them near 1.",
    "这里 √3 也无济于事：输入太大。在真正的模型里，层归一化使输入保持在 1 左右。",
)
WIDER = Bilingual(
    "And as d_k grows: random q and k of N(0, 1), 10 keys, 1,000 draws; medians over them.",
    "d_k 变大时会怎样：q、k 取 N(0, 1) 随机数，10 个键，抽 1000 次，取中位数。",
)
VANISHES = Bilingual(
    "Without the scale, scores spread as √d_k, one key takes all, and the median slope vanishes. The mean is even "
    "larger than with it: a few pairs get large pushes, most get none.",
    "不除 √d_k，分数的标准差随 √d_k 增大，一个键独占权重，斜率的中位数趋于 0。平均值反而比除了的更大："
    "少数几对受到很大的推动，多数几乎没有。",
)
