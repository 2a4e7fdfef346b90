"""The explanations of `manyheads walk`, in English and Chinese."""

from manyheads.language import Bilingual

UNTRAINED = Bilingual(
    "Untrained: random weights with one decimal. The arithmetic is real, the attention pattern has no meaning. "
    "Operands have as many digits as the printed result needs: a calculator gives the same.",
    "未训练：权重是一位小数的随机数。计算是真实的，但注意力的分布没有任何意义。"
    "算式中的数写到结果所需的位数，用计算器能算出同样的结果。",
)
ANSWER_IS_TEXT = Bilingual(
    "The decoder reads <s> and then the words written so far. Without --answer it writes the sentence itself.",
    "解码器先读 <s>，再读已写出的词；不给 --answer 时，写的就是这句话本身。",
)

TOKENS = Bilingual(
    "Each position is a token of the tokenizer; ▁ is a space, <s> is BOS, </s> is EOS.",
    "每个位置是分词器切出的一个子词；▁ 是空格，<s> 是句首标记，</s> 是句尾标记。",
)

INPUTS_WORKED = Bilingual(
    "Three positions with three numbers each. X is given: there is no embedding here.",
    "三个位置，每个位置三个数。X 是直接给出的，这里没有词嵌入。",
)
NOTES_WIDTH = Bilingual(
    "Some lecture notes give d_model = 9 for this example. That does not fit: a row of X has 3 numbers, so d_model "
    "is 3.",
    "有的讲义给这道题写 d_model = 9，这与 X 不符：X 每行 3 个数，d_model 就是 3。",
)
NOTES_K_V = Bilingual(
    "The same notes print 30 as the first number of K and of V. Check: row 1 of X times column 1 of W^K is "
    "1×1 + 2×2 + 3×3 = 14, and column 1 of W^V is the same. Their K and V are wrong; these are right.",
    "那份讲义的 K 和 V 第一个数都是 30。验算：X 的第 1 行乘 W^K 的第 1 列，1×1 + 2×2 + 3×3 = 14，W^V 的第 1 列"
    "也一样。讲义上的 K 和 V 是错的，这里的才对。",
)
EMBEDDING = Bilingual(
    "Each word has a vector e, its row of the embedding matrix.", "每个词有一个向量 e，即词嵌入矩阵中它的那一行。"
)
_ADDED = {
    "sinusoidal": Bilingual(
        "X = √d_model × e + the sine and cosine of its position.", "X = √d_model × e + 该位置的正弦、余弦编码。"
    ),
    "learned": Bilingual(
        "X = √d_model × e + the learned vector of its position.", "X = √d_model × e + 该位置的可学习向量。"
    ),
    "rotary": Bilingual(
        "X = √d_model × e. Nothing is added for the position: rotary positions rotate q and k inside the heads.",
        "X = √d_model × e。这里不加位置：旋转位置编码在头内部旋转 q 和 k。",
    ),
    "alibi": Bilingual(
        "X = √d_model × e. Nothing is added for the position: ALiBi lowers the scores of distant keys.",
        "X = √d_model × e。这里不加位置：ALiBi 按距离降低分数。",
    ),
    "none": Bilingual("X = √d_model × e. This model has no positions.", "X = √d_model × e。此模型没有位置编码。"),
}
NOT_SCALED = Bilingual("This model does not scale: read 1 for √d_model.", "此模型不缩放词向量：把 √d_model 当作 1。")
WHY_SCALE_EMBEDDING = Bilingual(
    "Why √d_model? A word vector starts with a length of about 1 at any width, because the output layer uses it too. A "
    "position has the length √(d_model/2). Unscaled, the position would outweigh the word 16 to 1 at d_model = 512.",
    "为什么乘 √d_model？词向量初始长度约为 1，与宽度无关（输出层也要用它）；位置编码的长度是 √(d_model/2)。"
    "不乘的话，d_model = 512 时位置的长度是词的 16 倍，词会被盖过。",
)
INPUTS_EMBEDDED = Bilingual(
    "X enters the first attention. Positions are added once, before the heads.",
    "X 进入第一个注意力层。位置只在进入各个头之前加一次，不在头内部加。",
)
INPUTS_RELATIVE = Bilingual("X enters the first attention.", "X 进入第一个注意力层。")
INPUTS_CROSS = Bilingual(
    "Queries come from the decoder, after its self-attention; keys and values from the output of the encoder.",
    "查询来自解码器（经过自注意力之后），键和值来自编码器的输出。",
)
INPUTS_LAYER = Bilingual(
    "The layers below have turned these vectors into the input of this attention, one row per position.",
    "经过前面各层，它们变成进入这一注意力层的输入，每个位置一行。",
)

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
    "standard deviation of √d_k; divided by √d_k, of 1. Large scores saturate the softmax: see step 10.",
    "为什么要除？若 q、k 的各个分量独立、均值为 0、方差为 1，则点积的标准差是 √d_k，除以 √d_k 就是 1。"
    "分数太大，softmax 会饱和（见第 10 步）。",
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
ROWS_READ = Bilingual(
    "The arrow points from the token that a row reads to the token that it writes.",
    "箭头左边是这一行读到的词元，右边是它写出的词元。",
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

RESIDUAL = Bilingual(
    "The attention does not replace x: its output is added to x (residual connection), so x and its gradient pass.",
    "注意力的输出不取代 x，而是加到 x 上（残差连接）：x 和它的梯度都能直接通过。",
)
PLACEMENTS = {
    "post": Bilingual(
        "Post-norm, as in 2017: output = norm(x + attention).", "后归一化（2017 年原版）：输出 = norm(x + 注意力)。"
    ),
    "pre": Bilingual(
        "Pre-norm: output = x + attention(norm(x)). The norm comes first.",
        "前归一化：输出 = x + 注意力(norm(x))，先归一化。",
    ),
}
NORM_WORKED = Bilingual(
    "The example has no norm of its own; this is LayerNorm with γ = 1, β = 0.",
    "例题本身没有归一化；这里用 γ = 1、β = 0 的层归一化。",
)
NORM_KINDS = {
    "layer": Bilingual(
        "LayerNorm: mean μ and variance σ² of the numbers of this token alone.",
        "层归一化：只用这一个词元的各个数求均值 μ 和方差 σ²。",
    ),
    "rms": Bilingual(
        "RMSNorm: divides by the root of the mean of squares of this token; no mean is subtracted.",
        "RMSNorm：除以这一词元各数的均方根，不减均值。",
    ),
    "batch": Bilingual(
        "BatchNorm at inference: mean and variance of each feature are those of training.",
        "批归一化（推理时）：每个特征的均值和方差取自训练。",
    ),
    "batch-with-padding": Bilingual(
        "BatchNorm at inference: mean and variance of each feature are those of training, where padding counted.",
        "批归一化（推理时）：每个特征的均值和方差取自训练，训练时填充也计入。",
    ),
    "sample": Bilingual(
        "Per-sample norm: mean and variance of all numbers of the sentence.",
        "按样本归一化：用整句所有的数求均值和方差。",
    ),
}
UNKNOWN_NORM = Bilingual("The steps of this norm are not known.", "这种归一化的计算步骤未知。")
PLAIN_NORM = Bilingual("Then n × γ + β; here γ = 1 and β = 0.", "再算 n × γ + β；这里 γ = 1，β = 0。")

COMPARE_NORMS = Bilingual(
    "The same numbers under three norms. A batch has two sentences: this one, and its first tokens, padded to the same "
    "length. Does the padding change a real token? Each row is (x-μ)/√(σ²+ε), before γ and β; batch norms use the "
    "statistics of the batch, as in training.",
    "同样的数，用三种归一化。一批两句：这一句，以及它开头的几个词元，后者填充到同样长度。填充会改变真实的词元吗？"
    "各行是 (x-μ)/√(σ²+ε)，未乘 γ、未加 β；批归一化用这一批的统计量，和训练时一样。",
)
COMPARED = {
    "layer": Bilingual("LayerNorm: over the numbers of the token", "层归一化：对该词元的各个数"),
    "batch": Bilingual(
        "BatchNorm: per feature, over the real tokens of the batch", "批归一化：对每个特征，取一批中的真实词元"
    ),
    "batch-with-padding": Bilingual(
        "Naive BatchNorm: per feature, padding counts", "朴素的批归一化：对每个特征，填充也计入"
    ),
    "sample": Bilingual("Per-sample norm: over the whole sentence, padding counts", "按样本归一化：对整句，填充也计入"),
}
NORMS_SHOW = Bilingual(
    "LayerNorm needs nothing but the token. Per-sample norm and naive BatchNorm shift with padding. BatchNorm over "
    "real tokens does not, but the token still depends on the other sentences of the batch, and inference has other "
    "statistics.",
    "层归一化只看这个词元。按样本归一化和朴素的批归一化会随填充变化。只算真实词元的批归一化不受填充影响，"
    "但仍依赖同批的其他句子，推理时的统计量也不同。",
)
PADDING_IS_ZERO = Bilingual(
    "Padding is rows of zeros here, to keep the arithmetic short.", "为便于计算，这里的填充行都是 0。"
)

NO_FEED_FORWARD = Bilingual(
    "The example has no feed-forward network. Give a sentence to see one.", "例题没有前馈网络。给一个句子就能看到。"
)
FEED_FORWARD = Bilingual(
    "Each position by itself, with the same weights: wider by W_1, a non-linear function, back by W_2.",
    "每个位置单独计算，权重相同：先用 W_1 变宽，经过非线性函数，再用 W_2 变回。",
)
AFTER_CROSS = Bilingual(
    "Its input has also passed the cross-attention of this block: see step 14.",
    "它的输入还经过了这一层的交叉注意力，见第 14 步。",
)
ACTIVATIONS = {
    "relu": Bilingual("ReLU: negative numbers become 0.", "ReLU：负数变为 0。"),
    "gelu": Bilingual("GELU: h × the probability that N(0, 1) is below h.", "GELU：h × N(0, 1) 小于 h 的概率。"),
    "swiglu": Bilingual(
        "SwiGLU: a second product g = x W_g is the gate; swish(g) = g / (1 + e^-g) multiplies h.",
        "SwiGLU：第二个乘积 g = x W_g 作门；用 swish(g) = g / (1 + e^-g) 乘 h。",
    ),
}

NO_DECODER = Bilingual(
    "There is no decoder here, so nothing is written token by token.", "这里没有解码器，不会逐个写出词元。"
)
PICTURE_ROWS = Bilingual(
    "Pictures of cross-attention on the lens page and in the README name a row by the token that it writes; here rows "
    "are named by the token that they read, one earlier.",
    "lens 页面和 README 的交叉注意力图用写出的词元给行命名；这里的行用读到的词元命名，早一个位置。",
)
MASKED_STEP = Bilingual(
    "It sees what has been read so far; later tokens have the score -∞.", "只看得到已经读到的词元；后面的分数是 -∞。"
)
CROSS_STEP = Bilingual(
    "q is from this position of the decoder, k and v are from the encoder's output: nothing is masked.",
    "q 来自解码器的这个位置，k 和 v 来自编码器的输出：没有掩码。",
)
NO_HEADS = Bilingual("All heads of this attention are pruned.", "这一注意力层的头已全部剪掉。")

NO_OUTPUT_SOFTMAX = Bilingual(
    "There is no decoder here, so there is no softmax over a next token.",
    "这里没有解码器，也就没有对下一个词元的 softmax。",
)
TIED = Bilingual(
    "The logit of a word is the dot product of h, the decoder's output, and the word's vector e: the same matrix as in "
    "the embedding (tied).",
    "一个词的 logit 是解码器输出 h 与该词向量 e 的点积：与词嵌入是同一个矩阵（权重共享）。",
)
NOT_TIED = Bilingual(
    "The logit of a word is the dot product of h, the decoder's output, and the word's vector in the output matrix, "
    "which this model does not share with the embedding.",
    "一个词的 logit 是解码器输出 h 与输出矩阵中该词向量的点积；此模型的输出矩阵不与词嵌入共享。",
)
FINAL_NORM = Bilingual(
    "A pre-norm model has one more norm after its last block.", "前归一化的模型在最后一层之后还有一次归一化。"
)

SMOOTHING = Bilingual(
    "The target is not 1 for the right word and 0 for the others, but 1-ε and ε/(V-1), with V words in the "
    "vocabulary. The loss is the cross-entropy of target and p.",
    "目标不是“正确的词为 1、其余为 0”，而是 1-ε 和 ε/(V-1)，V 是词表大小。损失是目标与 p 的交叉熵。",
)
NO_SMOOTHING = Bilingual(
    "This model is trained without label smoothing: the loss is -ln p of the right token.",
    "此模型训练时不用标签平滑：损失就是正确词元的 -ln p。",
)
WHY_SMOOTHING = Bilingual(
    "Why? Without smoothing the loss falls as long as logits grow. With it the best p of the right word is 1-ε, and "
    "larger logits cost more.",
    "为什么要平滑？不平滑时，logit 越大损失越小，没有尽头。平滑后，正确词的最佳概率是 1-ε，logit 再大反而损失更大。",
)
NO_LOSS = Bilingual(
    "There is no next token to predict here, so there is no such loss.", "这里不预测下一个词元，没有这种损失。"
)
NO_TARGET = Bilingual(
    "The token after this position is not known: choose an earlier one with --query.",
    "这个位置之后的词元未知：用 --query 选一个靠前的位置。",
)


def position_notes(kind: str, *, is_scaled: bool) -> list[Bilingual]:
    """Return what is added to a word vector, and whether it is scaled."""
    return [_ADDED[kind], *([] if is_scaled else [NOT_SCALED])]


def rows_read(read: str, written: str) -> Bilingual:
    """Return what the rows of a decoder's map mean."""
    return Bilingual(
        f"An arrow points from the token that a row reads to the token that it writes: reads {read}, writes {written}.",
        f"箭头左边是这一行读到的词元，右边是它写出的词元：读 {read}，写 {written}。",
    )


def decoder_step(position: int, reads: str, writes: str | None) -> Bilingual:
    """Return what a position of the decoder reads and writes."""
    if writes is None:
        return Bilingual(
            f"Position {position} of the decoder reads {reads}; the token that it writes is not known.",
            f"解码器的位置 {position} 读 {reads}；它写出的词元未知。",
        )
    return Bilingual(
        f"Position {position} of the decoder reads {reads}, writes {writes}: each position predicts the next token.",
        f"解码器的位置 {position} 读 {reads}，写 {writes}：每个位置预测下一个词元。",
    )


def next_token(reads: str, writes: str | None) -> Bilingual:
    """Return what the softmax predicts."""
    if writes is None:
        return Bilingual(f"The position that reads {reads}:", f"读 {reads} 的位置：")
    return Bilingual(f"The position that reads {reads} should write {writes}.", f"读 {reads} 的位置应当写出 {writes}。")


def all_terms(block: str, *, has_cross: bool) -> Bilingual:
    """Return how to see all terms of a decoder step."""
    more = (f" or {block}.cross", f" 或 {block}.cross") if has_cross else ("", "")
    return Bilingual(
        f"For every term of q·k, add --layer {block}.self{more[0]}.",
        f"要看 q·k 的每一项，加上 --layer {block}.self{more[1]}",
    )


TITLES = (
    Bilingual("Inputs   √d_model × e + position", "输入   √d_model × e + 位置"),
    Bilingual("Projections   x W^Q, x W^K, x W^V", "投影   x W^Q, x W^K, x W^V"),
    Bilingual("Products   q·k", "点积   q·k"),
    Bilingual("Scale   ÷ √d_k", "缩放   ÷ √d_k"),
    Bilingual("Mask", "掩码"),
    Bilingual("Softmax", "Softmax"),
    Bilingual("All weights", "全部权重"),
    Bilingual("Weighted sum   weights · V", "加权求和   权重 · V"),
    Bilingual("Concat and W^O", "拼接与 W^O"),
    Bilingual("Without √d_k", "如果不除以 √d_k"),
    Bilingual("Residual sum and norm", "残差连接与归一化"),
    Bilingual("LayerNorm, BatchNorm, per-sample norm", "层归一化、批归一化、按样本归一化"),
    Bilingual("Feed-forward   f(x W_1 + b_1) W_2 + b_2", "前馈网络   f(x W_1 + b_1) W_2 + b_2"),
    Bilingual("A decoder step", "解码器的一步"),
    Bilingual("Output softmax   logits = h Eᵀ", "输出 softmax   logits = h Eᵀ"),
    Bilingual("Label smoothing and loss", "标签平滑与损失"),
)
