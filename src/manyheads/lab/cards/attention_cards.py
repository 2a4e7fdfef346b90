"""Cards about the formula of attention."""

from manyheads.lab.card import Card, FollowUp, WrongAnswer
from manyheads.language import Bilingual

ATTENTION_CARDS = (
    Card(
        id="attention",
        question=Bilingual("What is attention, and when is it self-attention?", "什么是注意力？什么时候叫自注意力？"),
        answer=Bilingual(
            "For every query, attention returns a weighted average of the values. The weights come from comparing the query "
            "with every key, and they sum to 1. If queries, keys and values are computed from the same sequence, it is "
            "self-attention, and a token sees itself as well. If the queries come from the decoder and the keys and values "
            "from the encoder, it is cross-attention; the attention of RNN translators (Bahdanau 2015) was of this kind.",
            "对每个查询，注意力返回值向量的加权平均；权重由查询与各个键比较得到，总和为 1。Q、K、V 都由同一个序列算出，"
            "就是自注意力，每个词元也能看到自己。查询来自解码器、键和值来自编码器，就是交叉注意力；"
            "RNN 翻译模型里最早的注意力（Bahdanau 2015）属于这一种。",
        ),
        formula="Attention(Q, K, V) = softmax(QKᵀ / √d_k) V",
        computation=(
            Bilingual(
                "q = [1, 2], keys [1, 0], [0, 1], [1, 1]: q·k = {{computed one-query products}}",
                "q = [1, 2]，键为 [1, 0]、[0, 1]、[1, 1]：q·k = {{computed one-query products}}",
            ),
            Bilingual(
                "÷ √2 = {{computed one-query scores}}, softmax = {{computed one-query weights}}",
                "÷ √2 = {{computed one-query scores}}，softmax = {{computed one-query weights}}",
            ),
            Bilingual(
                "values [10, 0], [0, 10], [5, 5]: output = {{computed one-query output}}",
                "值为 [10, 0]、[0, 10]、[5, 5]：输出 = {{computed one-query output}}",
            ),
        ),
        command='manyheads walk "I love cats" --query love',
        wrong_answers=(
            WrongAnswer(
                Bilingual(
                    "Self-attention relates a token to all the others, but not to itself.",
                    "自注意力只计算一个词与其他词的关系，不包括自己。",
                ),
                Bilingual(
                    "Six tokens have {{computed views bidirectional}} pairs of query and key: the diagonal is included.",
                    "6 个词元共有 {{computed views bidirectional}} 对查询和键，对角线也算在内。",
                ),
            ),
        ),
        follow_ups=(
            FollowUp(
                Bilingual("Does a large weight mean that a token matters?", "权重大就说明这个词重要吗？"),
                Bilingual(
                    "Not by itself, since its value may be short: multiplying weights by the lengths of the "
                    "transformed values lowers the alignment error from 29.8 to 25.0 (Kobayashi 2020).",
                    "不一定，它的值向量可能很短：把权重乘上变换后值向量的长度，词对齐错误率从 29.8 降到 "
                    "25.0（Kobayashi 2020）。",
                ),
            ),
        ),
    ),
    Card(
        id="query-key-value",
        question=Bilingual("What are Q, K and V, and why three projections?", "Q、K、V 是什么？为什么要三个投影矩阵？"),
        answer=Bilingual(
            "The query says what a token looks for, the key what it can be found by, the value what it hands over. "
            "Three matrices let these differ: what identifies a token need not be what it passes on, and A can look "
            "for B without B looking for A. When a layer has to repeat the previous symbol, three matrices reach "
            "{{mean projections separate previous accuracy}} %, one matrix for all "
            "{{mean projections shared previous accuracy}} % and none {{mean projections none previous accuracy}} %.",
            "查询表示“我要找什么”，键表示“凭什么找到我”，值表示“找到后给什么”。三个矩阵让三者可以不同："
            "用来匹配的特征不必就是要传递的内容，A 找 B 时 B 也不必找 A。我们让一层注意力输出前一个符号："
            "三个矩阵准确率 {{mean projections separate previous accuracy}} %，三者共用一个矩阵 "
            "{{mean projections shared previous accuracy}} %，不用矩阵 {{mean projections none previous accuracy}} "
            "%。",
        ),
        formula="Q = X W^Q,   K = X W^K,   V = X W^V",
        plot=("projections", 0),
        command="manyheads lab projections",
        wrong_answers=(
            WrongAnswer(
                Bilingual(
                    "Three matrices help because there are more parameters.",
                    "三个矩阵有用，是因为参数更多。",
                ),
                Bilingual(
                    "With W^Q = W^K and heads twice as wide there are as many parameters, and accuracy on the previous symbol "
                    "is {{mean projections matched previous accuracy}} % instead of "
                    "{{mean projections separate previous accuracy}} %.",
                    "令 W^Q = W^K 并把查询和键加宽一倍，参数一样多，输出前一个符号的准确率是 "
                    "{{mean projections matched previous accuracy}} %，三个矩阵则是 "
                    "{{mean projections separate previous accuracy}} %。",
                ),
            ),
        ),
        follow_ups=(
            FollowUp(
                Bilingual("Must d_k equal d_v?", "d_k 必须等于 d_v 吗？"),
                Bilingual(
                    "No: queries and keys must have the same width, values may have any, and W^O maps h·d_v back to d_model.",
                    "不必：只有查询和键的宽度必须相同，值的宽度任意，最后由 W^O 把 h·d_v 映射回 d_model。",
                ),
            ),
        ),
    ),
    Card(
        id="tied-queries",
        question=Bilingual("Why not use Q = K?", "为什么不让 Q = K？"),
        answer=Bilingual(
            "With W^Q = W^K the scores are symmetric: A scores B exactly as B scores A. A layer that should look one "
            "step back then looks one step ahead as well. Besides, q·q = |q|² is large, so tokens prefer themselves. "
            "Repeating the previous symbol, we measure {{mean projections tied previous accuracy}} % tied and "
            "{{mean projections separate previous accuracy}} % separate; even on a lookup, where we expected no "
            "difference, {{mean projections tied lookup accuracy}} % and "
            "{{mean projections separate lookup accuracy}} %.",
            "W^Q = W^K 时分数矩阵对称：A 给 B 多少分，B 就给 A 多少分。想让一层只看前一个词，它就必然同样看后一个词。"
            "而且 q·q = |q|² 很大，词元偏爱自己。输出前一个符号，我们测得共用 "
            "{{mean projections tied previous accuracy}} %、分开 {{mean projections separate previous accuracy}} %；"
            "按键查找本来预计没有差别，结果也是 {{mean projections tied lookup accuracy}} % 对 "
            "{{mean projections separate lookup accuracy}} %。",
        ),
        formula="W^Q = W^K = W   ⇒   S = X W Wᵀ Xᵀ = Sᵀ",
        plot=("projections", 1),
        computation=(
            Bilingual(
                "x₁ = [1, 0], x₂ = [2, 1], separate matrices: q₁·k₂ = {{computed tied forward}}, q₂·k₁ = {{computed tied backward}}",
                "x₁ = [1, 0]，x₂ = [2, 1]，矩阵分开：q₁·k₂ = {{computed tied forward}}，q₂·k₁ = {{computed tied backward}}",
            ),
            Bilingual(
                "tied: q₁·k₂ = {{computed tied tied-forward}}, q₂·k₁ = {{computed tied tied-backward}}",
                "共用：q₁·k₂ = {{computed tied tied-forward}}，q₂·k₁ = {{computed tied tied-backward}}",
            ),
        ),
        command="manyheads lab projections",
        wrong_answers=(
            WrongAnswer(
                Bilingual("Then attention becomes the identity matrix.", "那样注意力矩阵就成了单位阵。"),
                Bilingual(
                    "Tokens do prefer themselves, but the matrix is not the identity: before training a token gives "
                    "itself {{mean projections tied lookup self_start}} % of the weight (separate: "
                    "{{mean projections separate lookup self_start}} %). A longer neighbor can beat the token "
                    "itself: in the example x₁ gives itself {{computed tied self}} and x₂ {{computed tied other}}.",
                    "有这种倾向，但不是单位阵：训练前词元给自己的权重是 {{mean projections tied lookup self_start}} "
                    "%（分开时 {{mean projections separate lookup self_start}} %）。邻居的向量更长时，可能胜过自己："
                    "例中 x₁ 给自己 {{computed tied self}}，给 x₂ {{computed tied other}}。",
                ),
            ),
        ),
        follow_ups=(
            FollowUp(
                Bilingual("And K = V?", "那 K = V 呢？"),
                Bilingual(
                    "In a language model, perplexity rises by 3.1 % and half of the KV cache is saved (Kayyam 2026).",
                    "语言模型的困惑度上升 3.1 %，KV 缓存省下一半（Kayyam 2026）。",
                ),
            ),
        ),
    ),
    Card(
        id="softmax",
        question=Bilingual("Why softmax?", "为什么用 softmax？"),
        answer=Bilingual(
            "Softmax turns any scores into positive weights that sum to 1, so the output is an average of values and stays in "
            "their range. It is smooth, it only depends on differences of scores, and larger differences make it sharper. "
            "The sum runs over the keys: every query has a row of its own.",
            "softmax 把任意分数变成总和为 1 的正权重，输出就是值向量的加权平均，不会超出它们的范围。它处处可导，只取决于分数之差，"
            "差距越大分布越尖锐。归一化沿键的方向进行：每个查询各有一行权重。",
        ),
        formula="wⱼ = exp(sⱼ) / Σₖ exp(sₖ),   ∂wⱼ/∂sⱼ = wⱼ (1 − wⱼ)",
        computation=(
            Bilingual(
                "scores [2, 1, −1]: softmax = {{computed softmax weights}}",
                "分数 [2, 1, −1]：softmax = {{computed softmax weights}}",
            ),
            Bilingual(
                "+100 to every score: {{computed softmax shifted}}", "每个分数加 100：{{computed softmax shifted}}"
            ),
            Bilingual("every score × 2: {{computed softmax doubled}}", "每个分数乘 2：{{computed softmax doubled}}"),
            Bilingual(
                "divided by their sum instead: {{computed softmax divided}}",
                "若改为除以总和：{{computed softmax divided}}",
            ),
        ),
        command="manyheads walk",
        wrong_answers=(
            WrongAnswer(
                Bilingual(
                    "In the 3×3 example (X = W^Q = [[1,2,3],[4,5,6],[7,8,9]], W^K = Xᵀ), all weights are 0.33.",
                    "3×3 例题（X = W^Q = [[1,2,3],[4,5,6],[7,8,9]]，W^K = Xᵀ）中，权重全是 0.33。",
                ),
                Bilingual(
                    "The scaled scores of the first row are {{computed three-by-three scores}}. A gap of "
                    "{{computed three-by-three gap}} leaves nothing to the others: the rows are {{computed three-by-three weights}}, and "
                    "every output is {{computed three-by-three output}}. Equal weights need equal scores.",
                    "第一行缩放后的分数是 {{computed three-by-three scores}}，最大两项相差 {{computed three-by-three gap}}，三行权重是 "
                    "{{computed three-by-three weights}}，输出全是 {{computed three-by-three output}}。"
                    "权重相等的前提是分数相等。",
                ),
            ),
        ),
        follow_ups=(
            FollowUp(
                Bilingual("How does code keep exp from overflowing?", "实现时怎样防止 exp 溢出？"),
                Bilingual(
                    "It subtracts the largest score of the row first; the weights stay the same, as the second line shows.",
                    "先减去该行的最大分数；如上面第二行所示，权重不变。",
                ),
            ),
        ),
    ),
    Card(
        id="scale",
        question=Bilingual("Why divide by √d_k?", "为什么要除以 √d_k？"),
        answer=Bilingual(
            "The standard deviation of a dot product of d_k independent terms grows with √d_k. Large scores saturate "
            "the softmax: one key gets nearly all the weight, and for most queries almost no gradient passes. For "
            "components of variance 1, dividing by √d_k keeps the variance of the scores at 1, whatever d_k is. In "
            "our experiment with d_k = 512, accuracy is {{mean scale sqrt 512 accuracy}} % with it and "
            "{{mean scale none 512 accuracy}} % without.",
            "q·k 是 d_k 个独立项之和，标准差随 √d_k 增大。分数过大，softmax 就会饱和：权重几乎集中在一个键上，"
            "多数查询几乎传不回梯度。各分量方差为 1 时，除以 √d_k 后分数的方差总是 1，与 d_k 无关。我们的实验中 d_k "
            "= 512，缩放时准确率 {{mean scale sqrt 512 accuracy}} %，不缩放 {{mean scale none 512 accuracy}} %。",
        ),
        formula="E[qᵢ] = E[kᵢ] = 0, Var = 1   ⇒   Var(q·k) = d_k,   Var(q·k / √d_k) = 1",
        plot=("scale", 0),
        command="manyheads lab scale",
        wrong_answers=(
            WrongAnswer(
                Bilingual("Without it all gradients vanish.", "不除的话，所有梯度都会消失。"),
                Bilingual(
                    "At d_k = 512 the median gradient of the scores changes by {{diff scale none sqrt 512 median_gradient}}, but "
                    "the 99th percentile by {{diff scale none sqrt 512 tail_gradient}}: most are tiny, a few are not.",
                    "d_k = 512 时，分数梯度的中位数变为 {{diff scale none sqrt 512 median_gradient}}，第 99 百分位数却是 "
                    "{{diff scale none sqrt 512 tail_gradient}}：多数极小，少数并不小。",
                ),
            ),
            WrongAnswer(
                Bilingual("The variance of q·k is always d_k.", "q·k 的方差总是 d_k。"),
                Bilingual(
                    "Only if all components are independent with mean 0 and variance 1. In our model at "
                    "initialization it is {{mean scale none 512 variance}} at d_k = 512.",
                    "只有各分量独立、均值为 0、方差为 1 时才成立。我们的模型初始化后，d_k = 512 时方差是 "
                    "{{mean scale none 512 variance}}。",
                ),
            ),
        ),
        follow_ups=(
            FollowUp(
                Bilingual("Why not divide by d_k?", "为什么不除以 d_k？"),
                Bilingual(
                    "You can: μP does (Yang 2022). In our task it changes accuracy by "
                    "{{diff scale linear sqrt 512 accuracy}} points at d_k = 512.",
                    "可以，μP（Yang 2022）就这么做。在我们的任务上，d_k = 512 时准确率变化 "
                    "{{diff scale linear sqrt 512 accuracy}} 个百分点。",
                ),
            ),
        ),
    ),
    Card(
        id="score-form",
        question=Bilingual("Is the scaled dot product the only form?", "注意力分数只能用缩放点积吗？"),
        answer=Bilingual(
            "No. Any function of a query and a key can be a score: additive (Bahdanau 2015), bilinear, cosine, or no comparison at all as in "
            "the synthesizers. The dot product is one matrix product, so it is fast and needs little memory. On our lookup task we measure "
            "{{mean score-form scaled-dot lookup accuracy}} % scaled dot, {{mean score-form additive lookup accuracy}} % additive and even "
            "{{mean score-form cosine lookup accuracy}} % cosine with a learned temperature; additive takes "
            "{{ratio score-form additive scaled-dot lookup time}} times as long.",
            "不是。查询与键的任何函数都能当分数：加性（Bahdanau 2015）、双线性、余弦，甚至像 Synthesizer 那样根本不比较。"
            "点积的好处是只需一次矩阵乘法，又快又省内存。在我们的查找任务上：缩放点积 {{mean score-form scaled-dot lookup accuracy}} %，"
            "加性 {{mean score-form additive lookup accuracy}} %，余弦（温度可学习）反而有 {{mean score-form cosine lookup accuracy}} %；"
            "加性的耗时是缩放点积的 {{ratio score-form additive scaled-dot lookup time}} 倍。",
        ),
        formula="q·k / √d_k      vᵀ tanh(W₁q + W₂k)      qᵀ W k      cos(q, k) / τ",
        plot=("score-form", 0),
        command="manyheads lab score-form",
        wrong_answers=(
            WrongAnswer(
                Bilingual(
                    "Weights must come from comparing queries with keys.",
                    "注意力权重必须由查询与键比较得到。",
                ),
                Bilingual(
                    "It depends on the task. A fixed table of weights (random synthesizer) repeats the previous symbol with "
                    "{{mean score-form random-synthesizer previous accuracy}} %, but looks up a record with "
                    "{{mean score-form random-synthesizer lookup accuracy}} %.",
                    "要看任务。固定的权重表（随机合成器）输出前一个符号能有 {{mean score-form random-synthesizer previous accuracy}} %，"
                    "按键查找只有 {{mean score-form random-synthesizer lookup accuracy}} %。",
                ),
            ),
        ),
        follow_ups=(
            FollowUp(
                Bilingual("Why did the paper prefer dot products to additive scores?", "论文为什么不用加性注意力？"),
                Bilingual(
                    "In theory both cost about the same; in practice dot products are much faster and need less "
                    "memory (Vaswani 2017, 3.2.1).",
                    "理论复杂度相近，但点积可用高度优化的矩阵乘法，实际更快、更省空间（Vaswani 2017，3.2.1 节）。",
                ),
            ),
        ),
    ),
    Card(
        id="mask",
        question=Bilingual(
            "What are padding and causal masks, and why −∞ before the softmax?",
            "填充掩码和因果掩码是什么？为什么在 softmax 之前设为 −∞？",
        ),
        answer=Bilingual(
            "The padding mask hides tokens that only fill up the batch; the causal mask hides the future from a "
            "decoder. Hidden scores become −∞ before the softmax: their weight is exactly 0, and the visible weights "
            "sum to 1. If weights are set to 0 afterwards, hidden keys have already taken their share of the sum. "
            "With 100 more padding tokens we then measure {{mean mask zero float32 padded_accuracy}} % instead of "
            "{{mean mask infinity float32 padded_accuracy}} %.",
            "填充掩码遮住为补齐长度而加的词元，因果掩码不让解码器看到未来。做法是在 softmax 之前把被遮的分数设为 −∞："
            "它们的权重恰好为 0，可见的权重之和为 1。若在 softmax 之后才置 0，被遮的键早已分走一份权重。"
            "每个序列再多补 100 个填充，我们测得准确率 {{mean mask zero float32 padded_accuracy}} %，正确做法是 "
            "{{mean mask infinity float32 padded_accuracy}} %。",
        ),
        formula="w = softmax(QKᵀ / √d_k + M),   Mᵢⱼ ∈ {0, −∞}",
        plot=("mask", 1),
        computation=(
            Bilingual(
                "scores [2, 1, 3], third key hidden; −∞ before: {{computed masks before}}",
                "分数 [2, 1, 3]，第三个键被遮；之前设 −∞：{{computed masks before}}",
            ),
            Bilingual(
                "0 after: {{computed masks after}}, sum {{computed masks after-sum}}",
                "之后置 0：{{computed masks after}}，和为 {{computed masks after-sum}}",
            ),
            Bilingual(
                "hidden score 5 instead of 3: −∞ before {{computed masks before-louder}}, 0 after {{computed masks after-louder}}",
                "被遮的分数由 3 变 5：之前设 −∞ {{computed masks before-louder}}，之后置 0 {{computed masks after-louder}}",
            ),
        ),
        command="manyheads lab mask",
        wrong_answers=(
            WrongAnswer(
                Bilingual(
                    "The weights of later tokens are set to 0 after the softmax.",
                    "softmax 之后把后面词的权重设为 0 即可。",
                ),
                Bilingual(
                    "Then the rows no longer sum to 1 ({{computed masks after-sum}} above), and the hidden score still changes the visible "
                    "weights: in our causal model the last symbol changes earlier outputs by {{mean mask zero float32 future}} %, with −∞ by "
                    "{{mean mask infinity float32 future}} %.",
                    "那样每行不再和为 1（上例为 {{computed masks after-sum}}），而且被遮的分数仍会影响可见的权重：在因果模型里改动最后一个"
                    "符号，前面的输出变动 {{mean mask zero float32 future}} %，用 −∞ 则是 {{mean mask infinity float32 future}} %。",
                ),
            ),
            WrongAnswer(
                Bilingual("Adding −1000 is always enough.", "加一个 −1000 总够了。"),
                Bilingual(
                    "Usually, but in the 3×3 example, whose scores differ by {{computed three-by-three gap}}, the hidden key still gets "
                    "{{mean mask 1000 float32 notes_leak}} % of the weight.",
                    "一般够，但 3×3 例题的分数相差 {{computed three-by-three gap}}，被遮的键仍得到 {{mean mask 1000 float32 notes_leak}} % 的权重。",
                ),
            ),
        ),
        follow_ups=(
            FollowUp(
                Bilingual("What if a query sees no key at all?", "如果一个查询什么键都看不到呢？"),
                Bilingual(
                    "The softmax of a row of −∞ is {{computed masks all-hidden}}, which makes the loss of the whole "
                    "batch NaN: return zeros instead.",
                    "全是 −∞ 的一行，softmax 得 {{computed masks all-hidden}}，会使整个批次的损失变成 NaN："
                    "应当改为返回全 0。",
                ),
            ),
        ),
    ),
)
