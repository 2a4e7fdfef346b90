"""Cards about what surrounds attention in a layer: residual connections, norms, the feed-forward network."""

from manyheads.lab.card import Card, FollowUp, WrongAnswer
from manyheads.language import Bilingual

NORM_AND_RESIDUAL_CARDS = (
    Card(
        id="residual",
        question=Bilingual("Why residual connections?", "为什么要有残差连接？"),
        answer=Bilingual(
            "A sublayer adds to its input instead of replacing it. The identity path carries the signal forward and "
            "the gradient back through any number of layers, and a token keeps what it was while attention adds "
            "context. With six layers we measure {{mean residual pre 6 accuracy}} % with residual connections and "
            "{{mean residual pre-plain 6 accuracy}} % without (pre-norm). Without them tokens become alike: in an "
            "untrained pre-norm model of twelve layers the cosine between outputs of different tokens is "
            "{{mean residual pre-plain 12 similarity}} instead of {{mean residual pre 12 similarity}}.",
            "子层的输出加到输入上，而不是取代输入。恒等通路让信号和梯度穿过任意多层，"
            "词元在吸收上下文的同时保留自身信息。6 层 Pre-Norm 模型我们测得：有残差 {{mean residual pre 6 accuracy}} "
            "%，没有 {{mean residual pre-plain 6 accuracy}} %。没有残差，词元会越来越像：未训练的 12 层 Pre-Norm "
            "模型里，不同词元输出的余弦相似度是 {{mean residual pre-plain 12 similarity}}，有残差时是 "
            "{{mean residual pre 12 similarity}}。",
        ),
        formula="y = x + f(x),   ∂y/∂x = I + ∂f/∂x",
        plot=("residual", 0),
        command="manyheads lab residual",
        wrong_answers=(
            WrongAnswer(
                Bilingual("Residual connections only matter in very deep models.", "残差连接只对很深的模型有用。"),
                Bilingual(
                    "With two layers accuracy is {{mean residual pre 2 accuracy}} % with and {{mean residual pre-plain 2 accuracy}} % without "
                    "them.",
                    "只有 2 层时，有残差 {{mean residual pre 2 accuracy}} %，没有 {{mean residual pre-plain 2 accuracy}} %。",
                ),
            ),
        ),
        follow_ups=(
            FollowUp(
                Bilingual("What must the shapes be?", "对形状有什么要求？"),
                Bilingual(
                    "Every sublayer maps d_model to d_model; this is why W^O and the second feed-forward matrix lead back to it.",
                    "每个子层的输入输出都是 d_model 维；W^O 和前馈网络的第二个矩阵就是为了变回这个维度。",
                ),
            ),
            FollowUp(
                Bilingual("Does attention alone, without them, lose rank?", "去掉残差，纯注意力会怎样？"),
                Bilingual(
                    "Without feed-forward networks as well, its output tends to identical rows, doubly exponentially "
                    "with depth (Dong 2021).",
                    "若前馈网络也去掉，输出的各行会趋于相同，速度随深度呈双指数（Dong 2021）。",
                ),
            ),
        ),
    ),
    Card(
        id="layer-or-batch-norm",
        question=Bilingual("Why layer norm and not batch norm?", "为什么用 LayerNorm 而不用 BatchNorm？"),
        answer=Bilingual(
            "Layer norm uses only the features of one token, so the result depends neither on the batch nor on "
            "padding, and it is the same in training and at inference. Batch norm uses statistics of the batch in "
            "training and stored averages at inference, and the two can differ. With batches of 4 we measure "
            "{{mean norm layer batch-4 accuracy}} % with layer norm and {{mean norm batch batch-4 accuracy}} % with "
            "batch norm; with batches of 32 there is no clear difference ({{mean norm layer batch-32 accuracy}} % "
            "and {{mean norm batch batch-32 accuracy}} %).",
            "LayerNorm 只用一个词元自己的特征，结果与同批的其他句子、与填充都无关，训练和推理完全一致。BatchNorm "
            "训练时用当前批的统计量，推理时用保存的滑动平均，两者可能对不上。批大小为 4 时我们测得 LayerNorm "
            "{{mean norm layer batch-4 accuracy}} %、BatchNorm {{mean norm batch batch-4 accuracy}} %；批大小为 32 "
            "时没有明显差异（{{mean norm layer batch-32 accuracy}} % 和 {{mean norm batch batch-32 accuracy}} %）。",
        ),
        formula="x̂ = (x − μ) / √(σ² + ε)      LN: μ, σ² ∈ ℝ^(B×n)      BN: μ, σ² ∈ ℝ^d",
        plot=("norm", 0),
        command="manyheads lab norm",
        wrong_answers=(
            WrongAnswer(
                Bilingual(
                    "Batch norm cannot be applied to sequences of varying length.",
                    "序列长度可变，所以 BatchNorm 根本不能用。",
                ),
                Bilingual(
                    "It can, if padding is left out: {{mean norm batch batch-32 accuracy}} % in our experiment with "
                    "batches of 32, and 34.4 against 35.5 BLEU in a published one (IWSLT14, Shen 2020). Its weak "
                    "point is that its outputs change from training to inference, with batches of 4 by "
                    "{{mean norm batch batch-4 drift}} %.",
                    "不计填充就能用：我们的实验里批大小 32 时 {{mean norm batch batch-32 accuracy}} %，公开结果是 "
                    "34.4 对 35.5 BLEU（IWSLT14，Shen 2020）。它的弱点是训练与推理不一致：批大小为 4 时输出变动 "
                    "{{mean norm batch batch-4 drift}} %。",
                ),
            ),
        ),
        follow_ups=(
            FollowUp(
                Bilingual("When is batch norm as good?", "什么时候 BatchNorm 不比 LayerNorm 差？"),
                Bilingual(
                    "Where its statistics in training and at inference are close (Wang 2022). Larger batches help: "
                    "its outputs change by {{mean norm batch batch-32 drift}} % from training to inference with "
                    "batches of 32 and by {{mean norm batch batch-4 drift}} % with batches of 4.",
                    "训练与推理的统计量接近时（Wang 2022）。批大一些会好些：从训练到推理，批大小为 32 时输出变动 "
                    "{{mean norm batch batch-32 drift}} %，批大小为 4 时变动 {{mean norm batch batch-4 drift}} %。",
                ),
            ),
        ),
    ),
    Card(
        id="layer-norm",
        question=Bilingual("What exactly does layer norm normalize?", "LayerNorm 到底对什么做归一化？"),
        answer=Bilingual(
            "Each token on its own: mean and variance are taken over its d_model features, then a learned weight γ and bias β of size d_model "
            "are applied. A batch of B sentences with n tokens has B·n means. No other token takes part, neither of the sentence nor "
            "of the batch.",
            "对每个词元单独做：在它的 d_model 个特征上求均值和方差，再乘以可学习的 γ、加上 β（长度都是 d_model）。"
            "B 个句子、每句 n 个词元，就有 B·n 个均值。同句和同批的其他词元都不参与。",
        ),
        formula="y = γ ⊙ (x − μ) / √(σ² + ε) + β,   μ = (1/d) Σⱼ xⱼ,   σ² = (1/d) Σⱼ (xⱼ − μ)²",
        plot=("norm", 2),
        computation=(
            Bilingual(
                "token [1, 2, 3, 6] (μ = {{computed norms mean}}, σ² = {{computed norms variance}}) followed by [5, 4, 1, 2]",
                "词元 [1, 2, 3, 6]（μ = {{computed norms mean}}，σ² = {{computed norms variance}}），后面跟着 [5, 4, 1, 2]",
            ),
            Bilingual(
                "layer norm: {{computed norms layer-alone}}; with padding {{computed norms layer-padded}}; beside another sentence "
                "{{computed norms layer-with-other}}",
                "层归一化：{{computed norms layer-alone}}；加填充 {{computed norms layer-padded}}；同批加一句 "
                "{{computed norms layer-with-other}}",
            ),
            Bilingual(
                "per sample: {{computed norms sample-alone}}; with padding {{computed norms sample-padded}}; beside another sentence "
                "{{computed norms sample-with-other}}",
                "逐样本：{{computed norms sample-alone}}；加填充 {{computed norms sample-padded}}；同批加一句 "
                "{{computed norms sample-with-other}}",
            ),
            Bilingual(
                "batch norm: {{computed norms batch-alone}}; with padding left out {{computed norms batch-padded}}; beside another "
                "sentence {{computed norms batch-with-other}}",
                "批归一化：{{computed norms batch-alone}}；加填充（不计入）{{computed norms batch-padded}}；同批加一句 "
                "{{computed norms batch-with-other}}",
            ),
        ),
        command='manyheads walk "I love cats" --steps 11-12',
        wrong_answers=(
            WrongAnswer(
                Bilingual(
                    "Layer norm normalizes per sample: all n × d values of a sentence together.",
                    "LayerNorm 是对一个样本归一化：把一句话的 n×d 个值放在一起算。",
                ),
                Bilingual(
                    "Then padding would change the result, as above: in our trained model by {{mean norm sample batch-32 padding}} %, with "
                    "layer norm by {{mean norm layer batch-32 padding}} %. And a causal model would see the future: changing the last token "
                    "changes earlier outputs by {{mean norm sample batch-32 future}} % (layer norm: {{mean norm layer batch-32 future}} %).",
                    "那样的话填充就会改变结果（如上）：在训练好的模型里变动 {{mean norm sample batch-32 padding}} %，层归一化只有 "
                    "{{mean norm layer batch-32 padding}} %。因果模型还会看到未来：改动最后一个词元，前面的输出变动 "
                    "{{mean norm sample batch-32 future}} %（层归一化 {{mean norm layer batch-32 future}} %）。",
                ),
            ),
        ),
        follow_ups=(
            FollowUp(
                Bilingual("What are γ and β for?", "γ 和 β 有什么用？"),
                Bilingual(
                    "They let each feature have the scale and offset that the next layer needs; they start as 1 and 0.",
                    "让每个特征恢复下一层所需的尺度和偏移；初值分别为 1 和 0。",
                ),
            ),
            FollowUp(
                Bilingual("Is it different in images?", "图像里的 LayerNorm 也一样吗？"),
                Bilingual(
                    "For CNNs it is often taken over channels and positions of an image; in a Transformer always over the features of a "
                    "token.",
                    "CNN 中常在整幅图的通道和位置上一起算；Transformer 中总是在一个词元的特征上算。",
                ),
            ),
        ),
    ),
    Card(
        id="pre-norm",
        question=Bilingual("Pre-norm or post-norm?", "Pre-Norm 和 Post-Norm 有什么区别？"),
        answer=Bilingual(
            "Post-norm (2017) normalizes after the residual sum, so every layer's norm lies on the main path; it "
            "becomes hard to train when deep, and is known to need warm-up (Xiong 2020). Pre-norm normalizes the "
            "input of each sublayer and leaves the main path free, with one more norm at the end. With twelve layers "
            "we measure {{mean residual post 12 accuracy}} % post and {{mean residual pre 12 accuracy}} % pre; with "
            "two layers, {{mean residual post 2 accuracy}} % and {{mean residual pre 2 accuracy}} %.",
            "Post-Norm（2017）在残差相加之后归一化，主通路上每层都有一次归一化，层数一多就难训练，"
            "通常需要预热（Xiong 2020）。Pre-Norm 只归一化子层的输入，主通路畅通，末尾再补一次归一化。12 "
            "层时我们测得 Post-Norm {{mean residual post 12 accuracy}} %，Pre-Norm {{mean residual pre 12 accuracy}} "
            "%；2 层时分别为 {{mean residual post 2 accuracy}} % 和 {{mean residual pre 2 accuracy}} %。",
        ),
        formula="Post: x ← LN(x + f(x))      Pre: x ← x + f(LN(x)),  y = LN(x)",
        plot=("residual", 2),
        command="manyheads lab residual",
        wrong_answers=(
            WrongAnswer(
                Bilingual("Pre-norm models are clearly better once trained.", "训练好之后，Pre-Norm 明显更好。"),
                Bilingual(
                    "Published: 35.50 BLEU post and 35.64 pre (Xiong 2020). What differs is how easily they train: "
                    "post-norm without warm-up reaches 8.45.",
                    "公开结果：Post-Norm 35.50、Pre-Norm 35.64 BLEU（Xiong 2020）。差别在于好不好训练：Post-Norm "
                    "不预热只有 8.45。",
                ),
            ),
        ),
        follow_ups=(
            FollowUp(
                Bilingual("Why does pre-norm need a norm at the end?", "Pre-Norm 为什么末尾还要一次归一化？"),
                Bilingual(
                    "The main path is a sum of all sublayers that nothing has normalized; it grows with depth.",
                    "主通路是所有子层输出之和，从未归一化，会随深度增大。",
                ),
            ),
        ),
    ),
    Card(
        id="rms-norm",
        question=Bilingual("What is RMSNorm, and why do newer models use it?", "RMSNorm 是什么？新模型为什么用它？"),
        answer=Bilingual(
            "RMSNorm divides each token by the root mean square of its features; it neither subtracts the mean nor "
            "has a bias. It keeps the invariance to scale, to which its authors attribute the benefit of layer norm, "
            "and is cheaper. In our experiment it reaches {{mean norm rms batch-32 accuracy}} %, layer norm "
            "{{mean norm layer batch-32 accuracy}} %: no clear difference.",
            "RMSNorm 用每个词元特征的均方根去除，不减均值，也没有偏置。"
            "它保留了对尺度的不变性（作者认为层归一化的好处主要来自这一点），计算更省。我们的实验中 RMSNorm "
            "{{mean norm rms batch-32 accuracy}} %，层归一化 {{mean norm layer batch-32 accuracy}} %，没有明显差异。",
        ),
        formula="RMSNorm(x) = γ ⊙ x / √((1/d) Σⱼ xⱼ² + ε)",
        computation=(
            Bilingual(
                "x = [1, 2, 3, 6]: layer norm {{computed norms layer-alone}}, RMSNorm {{computed norms rms-alone}}",
                "x = [1, 2, 3, 6]：层归一化 {{computed norms layer-alone}}，RMSNorm {{computed norms rms-alone}}",
            ),
            Bilingual(
                "x + 10: layer norm {{computed norms layer-shifted}} (the same), RMSNorm {{computed norms rms-shifted}}",
                "x + 10：层归一化 {{computed norms layer-shifted}}（不变），RMSNorm {{computed norms rms-shifted}}",
            ),
        ),
        command="manyheads lab norm",
        wrong_answers=(
            WrongAnswer(
                Bilingual("RMSNorm is layer norm without γ and β.", "RMSNorm 就是去掉 γ 和 β 的 LayerNorm。"),
                Bilingual(
                    "It keeps γ; what it drops is the mean, and the result differs: {{computed norms rms-alone}} against "
                    "{{computed norms layer-alone}}.",
                    "γ 还在，去掉的是均值（和 β），结果也不同：{{computed norms rms-alone}} 对 {{computed norms layer-alone}}。",
                ),
            ),
        ),
        follow_ups=(
            FollowUp(
                Bilingual("How much time does it save?", "能省多少时间？"),
                Bilingual(
                    "7–64 % of the running time in the models of the paper, at comparable quality (Zhang & Sennrich 2019).",
                    "论文的几种模型中省 7–64 % 的运行时间，质量相当（Zhang & Sennrich 2019）。",
                ),
            ),
        ),
    ),
    Card(
        id="feed-forward",
        question=Bilingual("What does the feed-forward network do?", "前馈网络 (FFN) 起什么作用？"),
        answer=Bilingual(
            "It treats every token on its own, with the same two matrices: d_model → d_ff → d_model with a "
            "non-linearity in between. Attention moves information between tokens, but given its weights it is "
            "linear in the values; the feed-forward network transforms what has arrived. It holds most of the "
            "parameters and works like a memory of patterns (Geva 2021). When a layer learns 2,048 facts by heart, "
            "we measure {{mean ffn relu-4 facts accuracy}} % with it and {{mean ffn none facts accuracy}} % without; "
            "when it looks up records of the sequence, {{mean ffn relu-4 lookup accuracy}} % and "
            "{{mean ffn none lookup accuracy}} %.",
            "它用同样的两个矩阵逐个处理词元：d_model → d_ff → d_model，中间有非线性激活。注意力在词元之间搬运信息，"
            "但权重给定后对值是线性的；前馈网络负责加工搬来的信息。它占了大部分参数，作用类似存储模式的记忆（Geva "
            "2021）。背诵 2048 条事实，我们测得有前馈网络 {{mean ffn relu-4 facts accuracy}} %，没有 "
            "{{mean ffn none facts accuracy}} %；查找句中已有的记录，则是 {{mean ffn relu-4 lookup accuracy}} % 和 "
            "{{mean ffn none lookup accuracy}} %。",
        ),
        formula="FFN(x) = W₂ max(0, W₁x + b₁) + b₂",
        plot=("ffn", 0),
        computation=(
            Bilingual(
                "parameters of a layer (512, 2048): attention {{computed feed-forward attention}}, feed-forward "
                "{{computed feed-forward network}}, which is {{computed feed-forward share}} %",
                "一层的参数 (512, 2048)：注意力 {{computed feed-forward attention}}，前馈网络 {{computed feed-forward network}}，占 "
                "{{computed feed-forward share}} %",
            ),
        ),
        command="manyheads lab ffn",
        wrong_answers=(
            WrongAnswer(
                Bilingual(
                    "The feed-forward network mixes the tokens of a sentence.", "前馈网络会混合一句话里的各个词。"
                ),
                Bilingual(
                    "It never sees two tokens at once: when we change one of three tokens, its own output changes by "
                    "{{computed feed-forward own-change}}, the outputs of the others by {{computed feed-forward other-change}}.",
                    "它一次只看一个词元：三个词元里改动一个，它自己的输出变化 {{computed feed-forward own-change}}，其余词元的输出变化 "
                    "{{computed feed-forward other-change}}。",
                ),
            ),
            WrongAnswer(
                Bilingual("Only the feed-forward network can store facts.", "只有前馈网络能记住事实。"),
                Bilingual(
                    "Three layers of attention without any, with as many parameters as one full layer, learn "
                    "{{mean ffn attention-only facts accuracy}} % of the facts, the full layer {{mean ffn relu-4 facts accuracy}} %.",
                    "三层没有前馈网络的注意力，参数与一个完整层一样多，能记住 {{mean ffn attention-only facts accuracy}} % 的事实，"
                    "完整的一层为 {{mean ffn relu-4 facts accuracy}} %。",
                ),
            ),
        ),
        follow_ups=(
            FollowUp(
                Bilingual("What if the activation is left out?", "去掉激活函数会怎样？"),
                Bilingual(
                    "Then W₂W₁ is one matrix of d_model × d_model, and the larger width is of no use.",
                    "W₂W₁ 就合成一个 d_model × d_model 的矩阵，加宽毫无意义。",
                ),
            ),
            FollowUp(
                Bilingual("What is SwiGLU?", "SwiGLU 是什么？"),
                Bilingual(
                    "A gate: W₂(SiLU(W₁x) ⊙ W₃x), with d_ff cut to two thirds so that three matrices have as many parameters as two "
                    "(Shazeer 2020); on the facts it changes accuracy by {{diff ffn swiglu relu-4 facts accuracy}} points.",
                    "带门控的前馈网络：W₂(SiLU(W₁x) ⊙ W₃x)；把 d_ff 减到三分之二，参数量就与两个矩阵时相同（Shazeer 2020）；"
                    "记事实的准确率变化 {{diff ffn swiglu relu-4 facts accuracy}} 个百分点。",
                ),
            ),
        ),
    ),
)
