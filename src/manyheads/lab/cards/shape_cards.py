"""Cards about the shapes of the Transformer: encoder, decoder, both, and the RNN that came before."""

from manyheads.lab.card import Card, FollowUp, WrongAnswer
from manyheads.language import Bilingual

SHAPE_CARDS = (
    Card(
        id="encoder-decoder",
        question=Bilingual(
            "How do encoder and decoder differ, and what is cross-attention?",
            "编码器和解码器有什么区别？什么是交叉注意力？",
        ),
        answer=Bilingual(
            "An encoder layer has self-attention and a feed-forward network; every token sees the whole source. A decoder layer masks the "
            "future in its self-attention and has cross-attention in between: queries from the decoder, keys and values from the "
            "encoder's output. The encoder runs once per sentence; the decoder runs once per generated token.",
            "编码器层由自注意力和前馈网络组成，每个词元看得到整个源句。解码器层的自注意力要遮住未来，中间还多一个交叉注意力："
            "查询来自解码器，键和值来自编码器的输出。编码器每句只跑一次，解码器每生成一个词元跑一次。",
        ),
        formula="CrossAttention(Y, M) = softmax(Y W^Q (M W^K)ᵀ / √d_k) M W^V,   softmax(…) ∈ ℝ^(n_target × n_source)",
        computation=(
            Bilingual(
                "six target tokens, five source tokens, visible pairs: encoder-style {{computed views bidirectional}}, causal "
                "{{computed views causal}}, cross {{computed views cross}}",
                "6 个目标词元、5 个源词元，可见的（查询, 键）对：双向 {{computed views bidirectional}}，因果 {{computed views causal}}，"
                "交叉 {{computed views cross}}",
            ),
            Bilingual(
                "parameters of a layer (512, 2048): encoder {{computed feed-forward layer}}, decoder "
                "{{computed feed-forward layer-with-cross}}",
                "一层的参数量 (512, 2048)：编码器 {{computed feed-forward layer}}，解码器 {{computed feed-forward layer-with-cross}}",
            ),
        ),
        command='manyheads walk "I love cats" --layer decoder.0.cross',
        wrong_answers=(
            WrongAnswer(
                Bilingual("Cross-attention needs the causal mask, too.", "交叉注意力也要加因果掩码。"),
                Bilingual(
                    "The source is known in full: all {{computed views cross}} pairs are visible. Only padding of the source is masked.",
                    "源句早已完整可见：{{computed views cross}} 对全部可见，只需遮住源句的填充。",
                ),
            ),
            WrongAnswer(
                Bilingual(
                    "In training, too, the decoder writes one token after the other.",
                    "训练时解码器也是一个词一个词地生成。",
                ),
                Bilingual(
                    "It reads the right target shifted by one, all positions in one pass; the mask leaves {{computed views causal}} of "
                    "{{computed views bidirectional}} pairs.",
                    "训练时输入右移一位的正确译文，所有位置一次算完；掩码在 {{computed views bidirectional}} 对中只留下 "
                    "{{computed views causal}} 对。",
                ),
            ),
        ),
        follow_ups=(
            FollowUp(
                Bilingual("Which encoder layer do the decoder layers read?", "解码器各层读的是编码器哪一层？"),
                Bilingual(
                    "All read the output of the last one; layers are not paired.",
                    "都读最后一层的输出，并不是逐层对应。",
                ),
            ),
        ),
    ),
    Card(
        id="decoder-only",
        question=Bilingual("Why are large language models decoder-only?", "为什么大语言模型大多只用解码器？"),
        answer=Bilingual(
            "One stack with a causal mask and no cross-attention; prompt and answer are one sequence. Every token is a training target, any "
            "task can be written as text to continue, and keys and values of the prompt stay valid while the answer grows. An encoder sees both "
            "sides, which helps understanding, but it cannot generate and has to recompute when text is added.",
            "只有一个带因果掩码的堆叠，没有交叉注意力，提示和回答是同一个序列。好处：每个词元都是训练目标；任何任务都能写成“续写”；"
            "提示的键和值在生成过程中一直有效，可以缓存。编码器能看到两侧，有利于理解，但不能生成，文本一变长就要重算。",
        ),
        formula="p(x) = Πₜ p(xₜ | x₁, …, xₜ₋₁)",
        computation=(
            Bilingual(
                "training targets in 100 tokens: causal 100, masked as in BERT 15 (Devlin 2019)",
                "100 个词元里的训练目标：因果语言模型 100 个，BERT 式掩码 15 个（Devlin 2019）",
            ),
            Bilingual(
                "parameters of a layer (512, 2048): {{computed feed-forward layer}}, with cross-attention "
                "{{computed feed-forward layer-with-cross}}",
                "一层的参数量 (512, 2048)：{{computed feed-forward layer}}；带交叉注意力 {{computed feed-forward layer-with-cross}}",
            ),
        ),
        command='manyheads walk "I love cats" --layer decoder.0.self',
        wrong_answers=(
            WrongAnswer(
                Bilingual(
                    "A causal model cannot use the whole prompt, since each token sees only what is to its left.",
                    "因果模型每个词只看左边，所以用不到整个提示。",
                ),
                Bilingual(
                    "The position that writes the answer sees all of it: of six tokens the last one sees {{computed views last}}.",
                    "写回答的位置看得到全部提示：6 个词元中，最后一个看到 {{computed views last}} 个。",
                ),
            ),
        ),
        follow_ups=(
            FollowUp(
                Bilingual("When is an encoder–decoder still a good choice?", "什么时候仍适合用编码器–解码器？"),
                Bilingual(
                    "When input and output are clearly two texts, as in translation: the encoder sees both sides and runs once.",
                    "输入输出明确分成两段时，如翻译：编码器能看两侧，而且只跑一次。",
                ),
            ),
        ),
    ),
    Card(
        id="understanding-generation",
        question=Bilingual(
            "What are NLU and NLG, and which shape fits which task?", "NLU 和 NLG 有什么不同？各适合哪种结构？"
        ),
        answer=Bilingual(
            "Understanding maps text to labels or spans: sentiment, topic, intent, named entities. Generation writes text: translation, "
            "summary, dialogue, stories. Understanding fits an encoder with a small output layer on a token or on the whole text; "
            "generation needs a decoder, with an encoder if there is a separate input. Large decoder-only models do both by writing the "
            "label.",
            "NLU 把文本变成标签或片段：情感、主题、意图、命名实体。NLG 写出文本：翻译、摘要、对话、故事。"
            "理解任务适合编码器加一个小输出层（对单个词元或整段文本）；生成任务需要解码器，若另有输入文本再加编码器。"
            "大型的纯解码器模型把标签“写出来”，两类都能做。",
        ),
        formula="NLU: p(y | x)      NLG: p(yₜ | y₁, …, yₜ₋₁, x)",
        computation=(
            Bilingual(
                "encoder: classify, tag · decoder: stories · encoder–decoder: translation, summary, dialogue",
                "编码器：分类、序列标注 · 解码器：故事续写 · 编码器–解码器：翻译、摘要、对话",
            ),
            Bilingual(
                "visible pairs of six tokens: encoder {{computed views bidirectional}}, decoder {{computed views causal}}",
                "6 个词元中可见的对数：编码器 {{computed views bidirectional}}，解码器 {{computed views causal}}",
            ),
        ),
        command="manyheads init reviews.csv",
        wrong_answers=(
            WrongAnswer(
                Bilingual("A decoder-only model cannot do understanding.", "纯解码器模型做不了理解任务。"),
                Bilingual(
                    "GPT (Radford 2018) is decoder-only and raised the best result on textual entailment (MultiNLI) by 1.5 points.",
                    "GPT（Radford 2018）是纯解码器，把文本蕴含 (MultiNLI) 的最好成绩提高了 1.5 个百分点。",
                ),
            ),
        ),
        follow_ups=(
            FollowUp(
                Bilingual("How are the two evaluated?", "两类任务怎样评价？"),
                Bilingual(
                    "Understanding by accuracy and F1, since there is one right label; generation by BLEU, chrF or human judgement, since many "
                    "texts are right.",
                    "理解任务答案唯一，用准确率和 F1；生成任务正确文本很多，用 BLEU、chrF 或人工评价。",
                ),
            ),
        ),
    ),
    Card(
        id="rnn",
        question=Bilingual("Why a Transformer and not an RNN?", "Transformer 相比 RNN 好在哪里？"),
        answer=Bilingual(
            "An RNN passes everything through one state, step by step: information from n tokens back has to survive "
            "n updates, and training cannot run in parallel over positions. Attention connects any two tokens in one "
            "step, and all positions are computed at once. The price is O(n²) and a growing cache; an RNN needs "
            "constant memory per step. Recalling a record 4 tokens back, we measure "
            "{{mean rnn transformer 4 accuracy}} % with a Transformer and {{mean rnn lstm 4 accuracy}} % with an "
            "LSTM of the same size; 64 tokens back, {{mean rnn transformer 64 accuracy}} % and "
            "{{mean rnn lstm 64 accuracy}} %.",
            "RNN 把一切都压进一个状态逐步传递：n 个词之前的信息要经过 n 次更新，训练也无法在位置上并行。"
            "注意力一步就能连接任意两个词元，所有位置同时计算。代价是 O(n²) 和不断增长的缓存；RNN 每步只需固定内存。"
            "回忆 4 个词元之前的记录，我们测得 Transformer {{mean rnn transformer 4 accuracy}} %，同样大小的 LSTM "
            "{{mean rnn lstm 4 accuracy}} %；64 个词元之前，则是 {{mean rnn transformer 64 accuracy}} % 和 "
            "{{mean rnn lstm 64 accuracy}} %。",
        ),
        formula="RNN: hₜ = f(hₜ₋₁, xₜ)      Attention: yₜ = Σⱼ wₜⱼ vⱼ",
        plot=("rnn", 0),
        command="manyheads lab rnn",
        wrong_answers=(
            WrongAnswer(
                Bilingual("Recurrence itself makes long distances impossible.", "只要是循环结构，就处理不了长距离。"),
                Bilingual(
                    "What is missing is a direct path. An LSTM with attention over its earlier states reaches "
                    "{{mean rnn lstm-attention 64 accuracy}} % at a distance of 64, more than the Transformer after as many steps.",
                    "缺的是直达的通路。给 LSTM 加上对以往状态的注意力，距离 64 时准确率 {{mean rnn lstm-attention 64 accuracy}} %："
                    "训练步数相同，比 Transformer 还高。",
                ),
            ),
            WrongAnswer(
                Bilingual("A Transformer is faster on any hardware.", "Transformer 在任何硬件上都更快。"),
                Bilingual(
                    "It needs parallel hardware. On one core a training step at a distance of 64 takes "
                    "{{ratio rnn transformer lstm 64 milliseconds}} times as long as that of the LSTM.",
                    "它靠的是并行硬件。在单核上，距离 64 时一个训练步的耗时是 LSTM 的 "
                    "{{ratio rnn transformer lstm 64 milliseconds}} 倍。",
                ),
            ),
        ),
        follow_ups=(
            FollowUp(
                Bilingual("Which one generates more cheaply?", "谁的生成开销更低？"),
                Bilingual(
                    "An RNN: each step costs the same, while attention reads a cache that grows with every token.",
                    "RNN：每步开销固定；注意力每步都要读一遍越来越长的缓存。",
                ),
            ),
        ),
    ),
)
