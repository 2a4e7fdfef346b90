"""Cards about what enters the model: positions, the scale of embeddings, tied matrices."""

from manyheads.lab.card import Card, FollowUp, WrongAnswer
from manyheads.language import Bilingual

INPUT_CARDS = (
    Card(
        id="positions",
        question=Bilingual("Why positions, and sinusoidal or learned?", "为什么需要位置编码？正弦还是可学习？"),
        answer=Bilingual(
            "Attention sums over a set: without positions, permuting the input only permutes the output. Sinusoids "
            "are fixed and defined for any length; learned vectors exist only up to a maximum. In the paper they are "
            "close: 25.8 and 25.7 BLEU. Finding the previous symbol with bidirectional attention, we measure "
            "{{mean positions none bidirectional accuracy}} % without positions, "
            "{{mean positions sinusoidal bidirectional accuracy}} % with sinusoids, "
            "{{mean positions learned bidirectional accuracy}} % learned.",
            "注意力是对集合求和：没有位置信息，打乱输入只会同样打乱输出。正弦编码是固定的，对任意长度都有定义；"
            "可学习的编码只到最大长度为止。论文中两者接近：25.8 和 25.7 BLEU。用双向注意力找前一个符号，我们测得："
            "无位置 {{mean positions none bidirectional accuracy}} %，正弦 "
            "{{mean positions sinusoidal bidirectional accuracy}} %，可学习 "
            "{{mean positions learned bidirectional accuracy}} %。",
        ),
        formula="PE(p, 2i) = sin(p / 10000^(2i/d)),   PE(p, 2i+1) = cos(p / 10000^(2i/d)),   x = E·√d + PE",
        plot=("positions", 0),
        computation=(
            Bilingual(
                "untrained encoder, input reversed: its outputs, reversed back, differ by at most {{computed order none}} without "
                "positions and by {{computed order sinusoidal}} with sinusoids",
                "未训练的编码器，输入倒序、再把输出倒回来：无位置编码时最多相差 {{computed order none}}，正弦编码时相差 "
                "{{computed order sinusoidal}}",
            ),
        ),
        command="manyheads lab positions",
        wrong_answers=(
            WrongAnswer(
                Bilingual(
                    "Without positions no Transformer can know the order of words.",
                    "没有位置编码，任何 Transformer 都不知道词序。",
                ),
                Bilingual(
                    "A causal one can, since the mask gives position p exactly p keys: {{mean positions none causal accuracy}} % in our experiment. "
                    "Published perplexities: causal 20.97 without and 20.16 with positions, masked 147 and 4.06 (Haviv 2022).",
                    "因果模型可以，因为掩码让第 p 个位置恰好看到 p 个键：我们测得 {{mean positions none causal accuracy}} %。公开的困惑度：因果模型"
                    "无位置 20.97、有位置 20.16；掩码语言模型则是 147 和 4.06（Haviv 2022）。",
                ),
            ),
            WrongAnswer(
                Bilingual(
                    "Sinusoids are defined for any length, so longer texts work.",
                    "正弦编码对任意长度有定义，所以更长的文本也没问题。",
                ),
                Bilingual(
                    "Defined is not learned: on sequences of 64 after training on at most 16, "
                    "{{mean positions sinusoidal causal longer_accuracy}} % instead of "
                    "{{mean positions sinusoidal causal accuracy}} % (causal).",
                    "有定义不等于学会了：训练时最长 16，测试长度 64，准确率 "
                    "{{mean positions sinusoidal causal longer_accuracy}} %，原长度内是 "
                    "{{mean positions sinusoidal causal accuracy}} %（因果）。",
                ),
            ),
        ),
        follow_ups=(
            FollowUp(
                Bilingual("Why sines and cosines?", "为什么用正弦和余弦？"),
                Bilingual(
                    "For a fixed offset k, PE(p + k) is a rotation of PE(p), the same at every p, so relative offsets are a linear map away.",
                    "对固定的偏移 k，PE(p + k) 是 PE(p) 的旋转，与 p 无关，相对位置用线性变换就能得到。",
                ),
            ),
        ),
    ),
    Card(
        id="rotary",
        question=Bilingual("What are rotary positions (RoPE)?", "旋转位置编码 (RoPE) 是什么？"),
        answer=Bilingual(
            "Nothing is added to the embeddings. Each pair of components of a query or key is rotated by an angle "
            "proportional to its position, inside every attention layer. The two rotations leave only their "
            "difference in q·k, so scores depend on the distance. Values are not rotated. With causal attention on "
            "sequences four times as long as in training, we measure "
            "{{mean positions rotary causal longer_accuracy}} % with RoPE, "
            "{{mean positions alibi causal longer_accuracy}} % with ALiBi and "
            "{{mean positions sinusoidal causal longer_accuracy}} % with sinusoids.",
            "不在词向量上加东西，而是在每层注意力里把查询和键的分量两两一组旋转，角度与位置成正比。两次旋转在 q·k "
            "中只留下角度之差，分数因此只取决于相对距离。值向量不旋转。用因果注意力，测试长度为训练时的四倍，"
            "我们测得 RoPE {{mean positions rotary causal longer_accuracy}} %，ALiBi "
            "{{mean positions alibi causal longer_accuracy}} %，正弦 "
            "{{mean positions sinusoidal causal longer_accuracy}} %。",
        ),
        formula="(R_m q)·(R_n k) = qᵀ R_(n−m) k,   θᵢ = 10000^(−2i/d_k)",
        plot=("positions", 1),
        computation=(
            Bilingual(
                "q = [1, 2, 0, 1], k = [2, 1, 1, 0]: q·k = {{computed rotary 0-0}} unrotated",
                "q = [1, 2, 0, 1]，k = [2, 1, 1, 0]：不旋转时 q·k = {{computed rotary 0-0}}",
            ),
            Bilingual(
                "at positions (3, 1): {{computed rotary 3-1}}; (10, 8): {{computed rotary 10-8}}; (103, 101): "
                "{{computed rotary 103-101}}; (3, 2): {{computed rotary 3-2}}",
                "位置 (3, 1)：{{computed rotary 3-1}}；(10, 8)：{{computed rotary 10-8}}；(103, 101)：{{computed rotary 103-101}}；"
                "(3, 2)：{{computed rotary 3-2}}",
            ),
        ),
        command="manyheads lab positions",
        wrong_answers=(
            WrongAnswer(
                Bilingual("RoPE is added to the embeddings like sinusoids.", "RoPE 和正弦编码一样加在词向量上。"),
                Bilingual(
                    "It multiplies queries and keys: the same pair gives {{computed rotary 3-1}} at distance 2 wherever it stands.",
                    "它作用在查询和键上，是旋转而不是相加：距离为 2 时，同一对向量无论在哪里都得 {{computed rotary 3-1}}。",
                ),
            ),
        ),
        follow_ups=(
            FollowUp(
                Bilingual("Does RoPE extend to any length?", "RoPE 能直接外推到任意长度吗？"),
                Bilingual(
                    "Not by itself: distances beyond training are angles the model has not seen, which is why contexts are extended by "
                    "rescaling the angles.",
                    "不能：超出训练长度的距离对应没见过的角度，所以扩展上下文时要缩放角度（如位置插值）。",
                ),
            ),
        ),
    ),
    Card(
        id="embedding-scale",
        question=Bilingual("Why multiply embeddings by √d_model?", "为什么词向量要乘以 √d_model？"),
        answer=Bilingual(
            "The shared matrix also computes the logits, so it starts small, with components of about 1/√d_model. "
            "Sinusoids have components of up to 1. Without the factor, positions outweigh the words at the start; "
            "with it both have the same order of magnitude. We found no published ablation. On a lookup with "
            "sinusoids we measure {{mean embedding-scale scaled sinusoidal accuracy}} % scaled and "
            "{{mean embedding-scale unscaled sinusoidal accuracy}} % not.",
            "共享的矩阵还要用来算 logits，初值很小，每个分量约 1/√d_model；正弦编码的分量可达 1。不乘这个系数，"
            "一开始位置就会淹没词义；乘上之后两者量级相同。没有找到公开发表的消融实验。查找任务加正弦编码，"
            "我们测得放大 {{mean embedding-scale scaled sinusoidal accuracy}} %、不放大 "
            "{{mean embedding-scale unscaled sinusoidal accuracy}} %。",
        ),
        formula="x = √d_model · E[token] + PE(p)",
        plot=("embedding-scale", 0),
        computation=(
            Bilingual(
                "d_model = 512, typical component: embedding {{computed embedding component}}, × {{computed embedding factor}} = "
                "{{computed embedding scaled}}, sinusoid {{computed embedding sinusoid-component}}",
                "d_model = 512，分量的典型大小：词向量 {{computed embedding component}}，× {{computed embedding factor}} = "
                "{{computed embedding scaled}}，正弦编码 {{computed embedding sinusoid-component}}",
            ),
            Bilingual(
                "length of the vector: embedding {{computed embedding length}}, scaled {{computed embedding scaled-length}}, sinusoid "
                "{{computed embedding sinusoid-length}}",
                "向量长度：词向量 {{computed embedding length}}，放大后 {{computed embedding scaled-length}}，正弦编码 "
                "{{computed embedding sinusoid-length}}",
            ),
        ),
        command="manyheads lab embedding-scale",
        wrong_answers=(
            WrongAnswer(
                Bilingual("It is the same √d as in attention.", "它和注意力里的 √d 是一回事。"),
                Bilingual(
                    "It is the opposite: attention divides by √d_k = 8 to make scores smaller, the embedding is multiplied by √d_model = "
                    "{{computed embedding factor}} to become larger.",
                    "正好相反：注意力除以 √d_k = 8 让分数变小，词向量乘以 √d_model = {{computed embedding factor}} 变大。",
                ),
            ),
            WrongAnswer(
                Bilingual("The factor always helps.", "乘上它总会更好。"),
                Bilingual(
                    "Not where nothing is added: with rotary positions we measure {{mean embedding-scale unscaled rotary accuracy}} % without and "
                    "{{mean embedding-scale scaled rotary accuracy}} % with it.",
                    "不相加时就不一定：用旋转位置编码，我们测得不放大 {{mean embedding-scale unscaled rotary accuracy}} %，放大 "
                    "{{mean embedding-scale scaled rotary accuracy}} %。",
                ),
            ),
        ),
        follow_ups=(
            FollowUp(
                Bilingual("Is it needed with other initial values?", "换一种初始化还需要吗？"),
                Bilingual(
                    "No: with embeddings of N(0, 1), as in nn.Embedding, they already are of the size of sinusoids.",
                    "不需要：若像 nn.Embedding 那样用 N(0, 1) 初始化，词向量本来就与正弦编码量级相同。",
                ),
            ),
        ),
    ),
    Card(
        id="tying",
        question=Bilingual("Why share one matrix for embeddings and output?", "为什么词嵌入和输出层共享一个矩阵？"),
        answer=Bilingual(
            "A logit is the inner product of the hidden vector with a word's vector, so the output matrix is a table "
            "of word vectors as well. Sharing saves a large part of a small model and lets every word learn from "
            "both sides; the paper shares source, target and output. In our experiment it is not free: after a short "
            "training, a small translator reaches {{mean tying all 4000 accuracy}} % with everything shared and "
            "{{mean tying output 4000 accuracy}} % with a separate output. Sharing source and target shows no clear "
            "cost ({{mean tying source 4000 accuracy}} % with a separate source).",
            "logit 就是隐藏向量与词向量的内积，所以输出矩阵本身也是一张词向量表。共享能省下小模型的一大块参数，"
            "每个词还能从两边学习；论文中源语言、目标语言和输出三者共享。但在我们的实验里并非没有代价：短时间训练后，"
            "小翻译模型全部共享时 {{mean tying all 4000 accuracy}} %，输出层独立时 "
            "{{mean tying output 4000 accuracy}} %。源端与目标端共享则看不出明显代价（源端独立 "
            "{{mean tying source 4000 accuracy}} %）。",
        ),
        formula="logits = H Eᵀ,   E ∈ ℝ^(V × d_model)",
        plot=("tying", 0),
        computation=(
            Bilingual(
                "base model, V = 37,000: one matrix has {{computed tying matrix}} M parameters; all shared {{computed tying tied}} M, three "
                "matrices {{computed tying free}} M",
                "base 模型，V = 37000：一个矩阵 {{computed tying matrix}} M 参数；全部共享共 {{computed tying tied}} M，三个矩阵共 "
                "{{computed tying free}} M",
            ),
        ),
        command="manyheads lab tying",
        wrong_answers=(
            WrongAnswer(
                Bilingual("Sharing saves little.", "共享省不了多少参数。"),
                Bilingual(
                    "{{computed tying share}} % of the parameters of the base model.",
                    "base 模型能省 {{computed tying share}} % 的参数。",
                ),
            ),
            WrongAnswer(
                Bilingual("Sharing always gives a better model.", "共享总会让模型更好。"),
                Bilingual(
                    "Not here: even against a shared model made wider, the separate output changes accuracy by "
                    "{{diff tying output wide 4000 accuracy}} points. Press & Wolf (2017) found lower perplexity with sharing.",
                    "这里就不是：即使把共享的模型加宽，输出层独立的模型准确率仍相差 {{diff tying output wide 4000 accuracy}} 个百分点。"
                    "Press & Wolf（2017）则发现共享后困惑度更低。",
                ),
            ),
        ),
        follow_ups=(
            FollowUp(
                Bilingual("What does it require?", "共享有什么前提？"),
                Bilingual(
                    "One vocabulary for both languages, and a hidden vector of the width of the embedding.",
                    "两种语言用同一个词表，隐藏向量与词向量等宽。",
                ),
            ),
            FollowUp(
                Bilingual("Do large models still do it?", "大模型还共享吗？"),
                Bilingual(
                    "Often not: in a large model the matrix is a small share of all parameters, and separate ones "
                    "give more freedom.",
                    "往往不共享：大模型里这个矩阵占比很小，分开更自由。",
                ),
            ),
        ),
    ),
)
