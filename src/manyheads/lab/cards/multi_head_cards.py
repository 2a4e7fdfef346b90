"""Cards about many heads: why, how they are computed, what W^O does, whether heads specialize."""

from manyheads.lab.card import Card, FollowUp, WrongAnswer
from manyheads.language import Bilingual

MULTI_HEAD_CARDS = (
    Card(
        id="heads",
        question=Bilingual("Why many heads?", "为什么要用多头注意力？"),
        answer=Bilingual(
            "One softmax gives one distribution: a single head that has to attend to two positions averages them. "
            "Several heads attend to several positions at once, each in a subspace of its own, with the same number "
            "of parameters. When a layer has to look up two records, we measure {{mean heads 1 two accuracy}} % with "
            "one head, {{mean heads 2 two accuracy}} % with two and {{mean heads 8 two accuracy}} % with eight (one "
            "record: {{mean heads 1 one accuracy}} % with one head, {{mean heads 8 one accuracy}} % with eight). In "
            "the paper, eight heads against one give 25.8 against 24.9 BLEU.",
            "一个 softmax 只有一个分布：单头要同时看两个位置，只能取平均。多个头可以同时看多个位置，"
            "各在自己的子空间里，参数总量不变。让一层注意力同时查两条记录，我们测得：1 个头 "
            "{{mean heads 1 two accuracy}} %，2 个头 {{mean heads 2 two accuracy}} %，8 个头 "
            "{{mean heads 8 two accuracy}} %（只查一条：1 个头 {{mean heads 1 one accuracy}} %，8 个头 "
            "{{mean heads 8 one accuracy}} %）。论文中 8 头对 1 头是 25.8 对 24.9 BLEU。",
        ),
        formula="headᵢ = Attention(Q Wᵢ^Q, K Wᵢ^K, V Wᵢ^V),   MultiHead = Concat(head₁, …, headₕ) W^O",
        plot=("heads", 0),
        command="manyheads lab heads",
        wrong_answers=(
            WrongAnswer(
                Bilingual("Eight heads gain 2–3 BLEU over one.", "8 个头比 1 个头高 2–3 个 BLEU。"),
                Bilingual(
                    "+0.9: 25.8 against 24.9 (Vaswani 2017, Table 3).",
                    "只高 0.9：25.8 对 24.9（Vaswani 2017，表 3）。",
                ),
            ),
            WrongAnswer(
                Bilingual("The more heads, the better.", "头越多越好。"),
                Bilingual(
                    "In the same table 16 heads stay at 25.8 and 32 heads fall to 25.4; each has only 16 dimensions left. From 8 to "
                    "16 heads our accuracy changes by {{diff heads 16 8 two accuracy}} points, no clear difference.",
                    "同一张表里，16 个头仍是 25.8，32 个头降到 25.4，每个头只剩 16 维。我们从 8 个头增加到 16 个头，"
                    "准确率变化 {{diff heads 16 8 two accuracy}} 个百分点，差异不明显。",
                ),
            ),
        ),
        follow_ups=(
            FollowUp(
                Bilingual("Are all heads needed after training?", "训练好的模型需要全部的头吗？"),
                Bilingual(
                    "No: 38 of 48 encoder heads can be pruned for 0.15 BLEU (Voita 2019).",
                    "不需要：48 个编码器头剪去 38 个，BLEU 只降 0.15（Voita 2019）。",
                ),
            ),
            FollowUp(
                Bilingual("Can depth replace heads?", "加深能代替多头吗？"),
                Bilingual(
                    "Liu 2021 report it for very deep models. Not in our short training: with about as many "
                    "parameters, two layers of one head reach {{mean heads deep two accuracy}} % on the two lookups, "
                    "one layer of two heads {{mean heads 2 two accuracy}} %.",
                    "Liu 2021 在很深的模型上观察到这一点。我们的短训练中则不能：参数量相近，两层、"
                    "每层一个头查两条记录的准确率为 {{mean heads deep two accuracy}} %，一层两个头为 "
                    "{{mean heads 2 two accuracy}} %。",
                ),
            ),
        ),
    ),
    Card(
        id="head-shapes",
        question=Bilingual(
            "How are heads computed and concatenated, and how many parameters do they have?",
            "多头怎样计算、怎样拼接？参数量是多少？",
        ),
        answer=Bilingual(
            "Project X (n × d_model) by W^Q, W^K and W^V, cut the results into h slices of width d_k = d_model / h, and let every head "
            "attend in its slice. Concatenate the h outputs (n × d_v) to n × h·d_v and multiply by W^O. That makes four matrices of "
            "d_model × d_model, whatever h is.",
            "X（n × d_model）分别乘 W^Q、W^K、W^V，结果切成 h 段，每段宽 d_k = d_model / h，每个头在自己那一段里做注意力。"
            "h 个输出（n × d_v）拼成 n × h·d_v，再乘 W^O。一共四个 d_model × d_model 的矩阵，与 h 无关。",
        ),
        formula="h · (2·d_model·d_k + d_model·d_v) + h·d_v·d_model = 4·d_model²      (h·d_k = h·d_v = d_model)",
        computation=(
            Bilingual(
                "d_model = 512: 8 heads {{computed multi-head parameters-8}}, 1 head {{computed multi-head parameters-1}}, 16 heads "
                "{{computed multi-head parameters-16}} parameters",
                "d_model = 512 的参数量：8 个头 {{computed multi-head parameters-8}}，1 个头 {{computed multi-head parameters-1}}，"
                "16 个头 {{computed multi-head parameters-16}}",
            ),
            Bilingual(
                "100 tokens, QKᵀ and weights·V: {{computed multi-head products-8}} multiplications with 8 heads, "
                "{{computed multi-head products-1}} with 1",
                "100 个词元，QKᵀ 与 权重·V 的乘法次数：8 个头 {{computed multi-head products-8}}，1 个头 "
                "{{computed multi-head products-1}}",
            ),
            Bilingual(
                "weights of one query: {{computed multi-head one-head-sum}} in one head, {{computed multi-head all-heads-sum}} over "
                "all eight",
                "一个查询的权重之和：一个头内 {{computed multi-head one-head-sum}}，8 个头合计 {{computed multi-head all-heads-sum}}",
            ),
        ),
        command='manyheads walk "I love cats" --head 1 --steps 8-9',
        wrong_answers=(
            WrongAnswer(
                Bilingual("The weights of all heads together sum to 1.", "所有头的权重加起来等于 1。"),
                Bilingual(
                    "Each head has a softmax of its own. In our trained model with eight heads, the weights of a query sum to "
                    "{{mean heads 8 two one_head_sum}} in one head and to {{mean heads 8 two all_heads_sum}} over the layer.",
                    "每个头各做一次 softmax。我们训练好的 8 头模型里，一个查询的权重在每个头内合计 "
                    "{{mean heads 8 two one_head_sum}}，整层合计 {{mean heads 8 two all_heads_sum}}。",
                ),
            ),
            WrongAnswer(
                Bilingual("Heads run in parallel, so many heads are faster than one.", "各头并行，所以多头比单头快。"),
                Bilingual(
                    "The number of multiplications is the same, as above; there are even h times as many softmax rows.",
                    "乘法次数如上，完全相同；softmax 的行数反而是 h 倍。",
                ),
            ),
        ),
        follow_ups=(
            FollowUp(
                Bilingual("Eight small matrices or one large one?", "代码里是 8 个小矩阵还是一个大矩阵？"),
                Bilingual(
                    "One large matrix, reshaped to (batch, h, n, d_k): the numbers are the same, the hardware is "
                    "better used.",
                    "一个大矩阵，再变形为 (batch, h, n, d_k)：结果一样，但硬件利用率更高。",
                ),
            ),
            FollowUp(
                Bilingual("What if heads become very narrow?", "头太窄会怎样？"),
                Bilingual(
                    "They tell fewer keys apart: 25.1 BLEU with d_k = 16 against 25.8 with 64 (Vaswani 2017, Table 3); among 32 keys we "
                    "measure {{mean head-width 2 - accuracy}} % with d_k = 2 and {{mean head-width 16 - accuracy}} % with 16.",
                    "能分辨的键变少：d_k = 16 时 BLEU 25.1，64 时 25.8（Vaswani 2017，表 3）；在 32 个键中查找，我们测得 d_k = 2 时 "
                    "{{mean head-width 2 - accuracy}} %，d_k = 16 时 {{mean head-width 16 - accuracy}} %。",
                ),
            ),
        ),
    ),
    Card(
        id="output-projection",
        question=Bilingual("What does W^O do? Does it mix the heads?", "W^O 有什么用？它会混合各个头吗？"),
        answer=Bilingual(
            "Without W^O head i could write only to its own slice of the output. W^O lets every head write to every dimension and adds "
            "the contributions up. It mixes heads by one fixed linear map, the same for every token and every input. How much it is worth is "
            "another question: we found no published ablation, and in our one-layer model it makes no clear difference "
            "({{mean output-projection full two accuracy}} % with, {{mean output-projection identity two accuracy}} % without); the "
            "feed-forward network that follows mixes the slices, too.",
            "没有 W^O，第 i 个头只能写入输出中属于自己的一段。W^O 让每个头都能写到所有维度，再把各头的贡献相加。"
            "这种混合是固定的线性变换，对任何词元、任何输入都一样。至于它值多少，没有找到公开发表的消融实验；在我们的单层模型里差异不明显"
            "（有 {{mean output-projection full two accuracy}} %，没有 {{mean output-projection identity two accuracy}} %），"
            "后面的前馈网络也能混合各段。",
        ),
        formula="Concat(head₁, …, headₕ) W^O = Σᵢ headᵢ Wᵢ^O",
        plot=("output-projection", 0),
        computation=(
            Bilingual(
                "heads [1, 2] and [3, −1], W^O = [[1,0],[0,1],[2,1],[1,−1]]: Concat · W^O = {{computed multi-head concat}} = "
                "{{computed multi-head first}} + {{computed multi-head second}}",
                "两个头 [1, 2] 和 [3, −1]，W^O = [[1,0],[0,1],[2,1],[1,−1]]：Concat · W^O = {{computed multi-head concat}} = "
                "{{computed multi-head first}} + {{computed multi-head second}}",
            ),
        ),
        command="manyheads lab output-projection",
        wrong_answers=(
            WrongAnswer(
                Bilingual(
                    "W^O weighs the heads dynamically, or makes them interact non-linearly.",
                    "W^O 会动态地给各头加权，或让各头产生非线性交互。",
                ),
                Bilingual(
                    "It is one matrix: the outputs for each head alone add up to the output for all, with an error of "
                    "{{mean output-projection full two additivity}}. What depends on the input are the attention weights: between two "
                    "inputs {{mean output-projection full two weights_change}} % of the weight moves.",
                    "它只是一个矩阵：各头单独的输出相加就是总输出，误差 {{mean output-projection full two additivity}}。"
                    "随输入变化的是注意力权重：换一个输入，权重有 {{mean output-projection full two weights_change}} % 会移动。",
                ),
            ),
        ),
        follow_ups=(
            FollowUp(
                Bilingual("Is W^O needed with a single head?", "只有一个头时还需要 W^O 吗？"),
                Bilingual(
                    "No, W^V W^O is then one matrix; we measure no clear difference ({{mean output-projection identity single accuracy}} % without, "
                    "{{mean output-projection full single accuracy}} % with it).",
                    "不需要，此时 W^V W^O 等于一个矩阵；我们测得差异不明显（不用 {{mean output-projection identity single accuracy}} %，"
                    "用 {{mean output-projection full single accuracy}} %）。",
                ),
            ),
        ),
    ),
    Card(
        id="specialize",
        question=Bilingual("Does every head learn something different?", "每个头学到的东西都不一样吗？"),
        answer=Bilingual(
            "Nothing forces heads apart except their random start and the loss; some specialize, many are redundant. "
            "Known roles are attending to the previous token, to a syntactic relation, to rare words, or to the "
            "aligned word. Through training, the divergence between heads goes from "
            "{{mean specialize random - divergence}} to {{mean specialize trained - divergence}} bits, and the "
            "entropy of their weights from {{mean specialize random - entropy}} % to "
            "{{mean specialize trained - entropy}} % of the highest.",
            "除了随机初始值和损失，没有什么强迫各头不同：有些头会专门化，很多头是冗余的。已知的角色有：看前一个词、"
            "句法、罕见词、词对齐。比较训练前后的模型，头与头之间的散度从 {{mean specialize random - divergence}} "
            "变为 {{mean specialize trained - divergence}} bit，权重的熵从最大值的 "
            "{{mean specialize random - entropy}} % 变为 {{mean specialize trained - entropy}} %。",
        ),
        formula="JS(w₁, …, wₕ) = H(mean w) − mean H(w)",
        plot=("specialize", 0),
        command="manyheads lab specialize",
        wrong_answers=(
            WrongAnswer(
                Bilingual("Each head is indispensable for one kind of relation.", "每个头各管一种关系，缺一不可。"),
                Bilingual(
                    "20–40 % of all heads can be removed with hardly any loss (Michel 2019). But not all: with a "
                    "single head left in the last cross-attention layer, 13.6 BLEU are lost.",
                    "去掉 20–40 % 的头几乎看不出差别（Michel 2019）。但不能随便去：最后一层交叉注意力只留一个头，"
                    "BLEU 会掉 13.6。",
                ),
            ),
        ),
        follow_ups=(
            FollowUp(
                Bilingual("How would you show that a head has a role?", "怎样证明一个头有某种作用？"),
                Bilingual(
                    "Compare it with a control: a BERT head finds the direct object in 86.8 % of cases, the best "
                    "fixed offset in 40.0 % (Clark 2019).",
                    "要有对照：BERT 有个头能找到 86.8 % 的直接宾语，而最好的固定偏移只有 40.0 %（Clark 2019）。",
                ),
            ),
        ),
    ),
)
