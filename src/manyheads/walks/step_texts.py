"""The explanations of the steps of `manyheads walk`, and their titles."""

from manyheads.messages import Message

UNTRAINED = Message(
    "Untrained: random weights with one decimal. The arithmetic is real, the attention pattern has no meaning. "
    "Operands have as many digits as the printed result needs: a calculator gives the same."
)
ANSWER_IS_TEXT = Message(
    "The decoder reads <s> and then the words written so far. Without --answer it writes the sentence itself."
)

TOKENS = Message("Each position is a token of the tokenizer; ▁ is a space, <s> is BOS, </s> is EOS.")

INPUTS_WORKED = Message("Three positions with three numbers each. X is given: there is no embedding here.")
NOTES_WIDTH = Message(
    "Some lecture notes give d_model = 9 for this example. That does not fit: a row of X has 3 numbers, so "
    "d_model is 3."
)
NOTES_K_V = Message(
    "The same notes print 30 as the first number of K and of V. Check: row 1 of X times column 1 of W^K is 1×1 "
    "+ 2×2 + 3×3 = 14, and column 1 of W^V is the same. Their K and V are wrong; these are right."
)
EMBEDDING = Message("Each word has a vector e, its row of the embedding matrix.")
_ADDED = {
    "sinusoidal": Message("X = √d_model × e + the sine and cosine of its position."),
    "learned": Message("X = √d_model × e + the learned vector of its position."),
    "rotary": Message(
        "X = √d_model × e. Nothing is added for the position: rotary positions rotate q and k inside the heads."
    ),
    "alibi": Message("X = √d_model × e. Nothing is added for the position: ALiBi lowers the scores of distant keys."),
    "none": Message("X = √d_model × e. This model has no positions."),
}
EMBEDDING_NORM = Message("This model normalizes X, one token at a time, before it enters the first attention.")
NOT_SCALED = Message("This model does not scale: read 1 for √d_model.")
WHY_SCALE_EMBEDDING = Message(
    "Why √d_model? A word vector starts with a length of about 1 at any width, because the output layer uses "
    "it too. A position has the length √(d_model/2). Unscaled, the position would outweigh the word 16 to 1 at "
    "d_model = 512."
)
INPUTS_EMBEDDED = Message("X enters the first attention. Positions are added once, before the heads.")
INPUTS_RELATIVE = Message("X enters the first attention.")
INPUTS_CROSS = Message(
    "Queries come from the decoder, after its self-attention; keys and values from the output of the encoder."
)
INPUTS_LAYER = Message(
    "The layers below have turned these vectors into the input of this attention, one row per position."
)

ROLES = Message(
    "Each position has a query q (what it searches), a key k (what it matches) and a value v (what it contributes)."
)
OWN_COLUMNS = Message("Every head has its own columns of W^Q, W^K and W^V; these belong to this head.")
NO_PROJECTIONS = Message("This model has no projections: each head reads its own part of x.")
ROTATED = Message("Rotary positions rotate each pair of numbers of q and k by an angle that grows with the position.")

MATCHING = Message("How well does the query match each key? Multiply element by element and add up (dot product).")
OTHER_FORMS = {
    "cosine": Message("Only directions count: q and k are normalized to length 1 before the product."),
    "bilinear": Message("Each head has a matrix between query and key: q W k."),
    "additive": Message("This score is not a dot product: each term is w × tanh(q + k)."),
    "dense-synthesizer": Message("There are no keys: the query alone gives a score to each position."),
    "random-synthesizer": Message("There are no queries and keys: all sentences share one learned table of scores."),
}
ITSELF = Message("The keys include the position of the query itself.")

WHY_DIVIDE = Message(
    "Why divide? If the numbers of q and k are independent, with mean 0 and variance 1, a sum of d_k products "
    "has a standard deviation of √d_k; divided by √d_k, of 1. Large scores saturate the softmax: see step 10."
)
LEARNED_SCALE = Message("Each head learns the scale of its cosine.")
NO_SCALE = Message("This score has no scale.")

DISTANCE = Message("This head adds a number to each score that it has learned for the distance.")
ALIBI = Message("ALiBi first subtracts distance × slope, with a slope for each head.")
NOTHING_HIDDEN = Message("Nothing is masked: every query sees every key. (In a batch, padding is masked.)")
HINT_CAUSAL = Message("To see a causal mask, add --layer decoder.0.self")
CAUSAL = Message(
    "A decoder does not see tokens that are not written yet: each position sees itself and earlier positions."
)
WHY_BEFORE = Message(
    "Why before the softmax? A masked score becomes -∞, e^-∞ = 0, and the row still sums to 1. If the weights "
    "were zeroed after the softmax, the row would sum to less than 1, and masked keys would still count in the "
    "denominator."
)

SOFTMAX = Message(
    "e^score is positive; divided by their sum, the weights of a row sum to 1. The largest score of the row is "
    "subtracted first: the quotient is the same, and nothing overflows."
)
UNDERFLOW = Message("0: too small to be represented.")

ALL_ROWS = Message("The same for every query: rows are queries, columns are keys. Each row of each head sums to 1.")
ROWS_READ = Message("The arrow points from the token that a row reads to the token that it writes.")
NOT_A_THIRD = Message(
    "Saturated: in every row one key has all the weight, since the scores differ by thousands. Some lecture "
    "notes print 0.33 everywhere; that is a mistake."
)

WEIGHTED_SUM = Message("The output of the head: each value times its weight, added up.")

CONCAT = Message(
    "All heads are concatenated and multiplied by W^O: a fixed linear combination, the same for every sentence."
)
NO_OUTPUT = Message("There is no W^O: the output is the concatenation itself.")
HEAD_BY_HEAD = Message("This equals the sum over heads: output = Σ head_i W_i^O.")

WITHOUT_SCALE = Message(
    "The right half shows the same row without the scale. The slope of a weight is its derivative by q·k: "
    "w(1-w)/√d_k, or w(1-w) without the scale. Gradients are multiplied by it: where it is 0, nothing is "
    "learned from that pair."
)
NO_CONTRAST = Message("This score has no √d_k.")
NO_HELP = Message(
    "Dividing by √3 does not help here: the inputs are too large. In a model, layer norm keeps them near 1."
)
WIDER = Message("The effect of d_k: q and k drawn from N(0, 1), 10 keys, medians over 1,000 draws.")
VANISHES = Message(
    "Without the scale, the standard deviation of scores grows as √d_k, one key gets all the weight, and the "
    "median slope vanishes. The mean slope is larger than with the scale: few pairs get large gradients, most "
    "get none."
)

RESIDUAL = Message(
    "The attention does not replace x: its output is added to x (residual connection), so x and its gradient pass."
)
PLACEMENTS = {
    "post": Message("Post-norm, as in 2017: output = norm(x + attention)."),
    "pre": Message("Pre-norm: output = x + attention(norm(x)). The norm comes first."),
}
NORM_WORKED = Message("The example has no norm of its own; this is LayerNorm with γ = 1, β = 0.")
NORM_KINDS = {
    "layer": Message("LayerNorm: mean μ and variance σ² of the numbers of this token alone."),
    "rms": Message("RMSNorm: divides by the root of the mean of squares of this token; no mean is subtracted."),
    "batch": Message("BatchNorm at inference: mean and variance of each feature are those of training."),
    "batch-with-padding": Message(
        "BatchNorm at inference: mean and variance of each feature are those of training, where padding counted."
    ),
    "sample": Message("Per-sample norm: mean and variance of all numbers of the sentence."),
}
UNKNOWN_NORM = Message("The steps of this norm are not known.")
PLAIN_NORM = Message("Then n × γ + β; here γ = 1 and β = 0.")

COMPARE_NORMS = Message(
    "The same numbers under three norms. A batch has two sentences: this one, and its first tokens, padded to "
    "the same length. Does the padding change a real token? Each row is (x-μ)/√(σ²+ε), before γ and β; batch "
    "norms use the statistics of the batch, as in training."
)
COMPARED = {
    "layer": Message("LayerNorm: over the numbers of the token"),
    "batch": Message("BatchNorm: per feature, over the real tokens of the batch"),
    "batch-with-padding": Message("Naive BatchNorm: per feature, padding counts"),
    "sample": Message("Per-sample norm: over the whole sentence, padding counts"),
}
NORMS_SHOW = Message(
    "LayerNorm needs nothing but the token. Per-sample norm and naive BatchNorm shift with padding. BatchNorm "
    "over real tokens does not, but the token still depends on the other sentences of the batch, and inference "
    "has other statistics."
)
PADDING_IS_ZERO = Message("Padding is rows of zeros here, to keep the arithmetic short.")

NO_FEED_FORWARD = Message("The example has no feed-forward network. Give a sentence to see one.")
FEED_FORWARD = Message(
    "Each position by itself, with the same weights: wider by W_1, a non-linear function, back by W_2."
)
AFTER_CROSS = Message("Its input has also passed the cross-attention of this block: see step 14.")
ACTIVATIONS = {
    "relu": Message("ReLU: negative numbers become 0."),
    "gelu": Message("GELU: h × the probability that N(0, 1) is below h."),
    "gelu-tanh": Message("GELU: h × the probability that N(0, 1) is below h, approximated with tanh."),
    "silu": Message("SiLU (swish): h / (1 + e^-h)."),
    "geglu": Message("GEGLU: a second product g = x W_g is the gate; GELU(g) multiplies h."),
    "geglu-tanh": Message("GEGLU: a second product g = x W_g is the gate; GELU(g), with tanh, multiplies h."),
    "swiglu": Message("SwiGLU: a second product g = x W_g is the gate; swish(g) = g / (1 + e^-g) multiplies h."),
}

NO_DECODER = Message("There is no decoder here, so nothing is written token by token.")
PICTURE_ROWS = Message(
    "Pictures of cross-attention on the lens page and in the README name a row by the token that it writes; "
    "here rows are named by the token that they read, one earlier."
)
MASKED_STEP = Message("It sees what has been read so far; later tokens have the score -∞.")
CROSS_STEP = Message(
    "q is from this position of the decoder, k and v are from the encoder's output: nothing is masked."
)
NO_HEADS = Message("All heads of this attention are pruned.")

NO_OUTPUT_SOFTMAX = Message("There is no decoder here, so there is no softmax over a next token.")
TIED = Message(
    "The logit of a word is the dot product of h, the decoder's output, and the word's vector e: the same "
    "matrix as in the embedding (tied)."
)
NOT_TIED = Message(
    "The logit of a word is the dot product of h, the decoder's output, and the word's vector in the output "
    "matrix, which this model does not share with the embedding."
)
FINAL_NORM = Message("A pre-norm model has one more norm after its last block.")

SMOOTHING = Message(
    "The target is not 1 for the right word and 0 for the others, but 1-ε and ε/(V-1), with V words in the "
    "vocabulary. The loss is the cross-entropy of target and p."
)
NO_SMOOTHING = Message("This model is trained without label smoothing: the loss is -ln p of the right token.")
WHY_SMOOTHING = Message(
    "Why? Without smoothing the loss falls as long as logits grow. With it the best p of the right word is "
    "1-ε, and larger logits cost more."
)
NO_LOSS = Message("There is no next token to predict here, so there is no such loss.")
NO_TARGET = Message("The token after this position is not known: choose an earlier one with --query.")


def position_notes(kind: str, *, is_scaled: bool) -> list[Message]:
    """Return what is added to a word vector, and whether it is scaled."""
    return [_ADDED[kind], *([] if is_scaled else [NOT_SCALED])]


def rows_read(read: str, written: str) -> Message:
    """Return what the rows of a decoder's map mean."""
    return Message(
        "An arrow points from the token that a row reads to the token that it writes: reads {read}, writes {written}.",
        read=read,
        written=written,
    )


def decoder_step(position: int, reads: str, writes: str | None) -> Message:
    """Return what a position of the decoder reads and writes."""
    if writes is None:
        return Message(
            "Position {position} of the decoder reads {reads}; the token that it writes is not known.",
            position=position,
            reads=reads,
        )
    return Message(
        "Position {position} of the decoder reads {reads}, writes {writes}: each position predicts the next token.",
        position=position,
        reads=reads,
        writes=writes,
    )


def next_token(reads: str, writes: str | None) -> Message:
    """Return what the softmax predicts."""
    if writes is None:
        return Message("The position that reads {reads}:", reads=reads)
    return Message("The position that reads {reads} should write {writes}.", reads=reads, writes=writes)


def all_terms(block: str, *, has_cross: bool) -> Message:
    """Return how to see all terms of a decoder step."""
    if has_cross:
        return Message("For every term of q·k, add --layer {block}.self or {block}.cross.", block=block)
    return Message("For every term of q·k, add --layer {block}.self.", block=block)


TITLES = (
    Message("Inputs   √d_model × e + position"),
    Message("Projections   x W^Q, x W^K, x W^V"),
    Message("Products   q·k"),
    Message("Scale   ÷ √d_k"),
    Message("Mask"),
    Message("Softmax"),
    Message("All weights"),
    Message("Weighted sum   weights · V"),
    Message("Concat and W^O"),
    Message("Without √d_k"),
    Message("Residual sum and norm"),
    Message("LayerNorm, BatchNorm, per-sample norm"),
    Message("Feed-forward   f(x W_1 + b_1) W_2 + b_2"),
    Message("A decoder step"),
    Message("Output softmax   logits = h Eᵀ"),
    Message("Label smoothing and loss"),
)
