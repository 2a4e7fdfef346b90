"""Cards about time and memory: the cost of attention, the key–value cache, shared keys and values."""

from manyheads.lab.card import Card, FollowUp, WrongAnswer
from manyheads.language import Bilingual

EFFICIENCY_CARDS = (
    Card(
        id="cost",
        question=Bilingual(
            "What does attention cost? Is it always O(n²)?", "注意力的复杂度是多少？瓶颈总是 O(n²) 吗？"
        ),
        answer=Bilingual(
            "QKᵀ and weights·V take n²·d multiplications each, the four projections n·d² each. So the quadratic part "
            "exceeds the linear one only when n is larger than 2·d_model. Storing the weights takes h·n² numbers; "
            "fused kernels such as FlashAttention avoid this memory, but not the n² multiplications. Operations are "
            "not time: at n = 64 a layer of width 64 needs {{ratio cost explicit feed-forward 64 gflops}} times the "
            "operations of its feed-forward network but took {{ratio cost explicit feed-forward 64 milliseconds}} "
            "times as long; at n = 2,048, {{ratio cost explicit feed-forward 2048 milliseconds}} times.",
            "QKᵀ 和 权重·V 各需 n²·d 次乘法，四个投影各需 n·d² 次。所以只有 n > 2·d_model 时，平方项才超过线性项。"
            "存下注意力权重要 h·n² 个数；FlashAttention 这类融合算子省掉的是这部分内存，n² 次乘法一次不少。"
            "运算量不等于时间：宽度 64 的一层，n = 64 时注意力的运算量是前馈网络的 "
            "{{ratio cost explicit feed-forward 64 gflops}} 倍，耗时却是 "
            "{{ratio cost explicit feed-forward 64 milliseconds}} 倍；n = 2048 时耗时是 "
            "{{ratio cost explicit feed-forward 2048 milliseconds}} 倍。",
        ),
        formula="2·n²·d > 4·n·d²   ⇔   n > 2·d",
        plot=("cost", 0),
        computation=(
            Bilingual(
                "d_model = 512, share of the quadratic part: {{computed cost share-512}} % at n = 512, {{computed cost share-1024}} % at 1,024, "
                "{{computed cost share-8192}} % at 8,192",
                "d_model = 512，平方项所占比例：n = 512 时 {{computed cost share-512}} %，1024 时 {{computed cost share-1024}} %，8192 时 "
                "{{computed cost share-8192}} %",
            ),
            Bilingual(
                "weights of 8 heads in float32: {{computed cost memory-512}} MiB at n = 512, {{computed cost memory-2048}} MiB at 2,048, "
                "{{computed cost memory-8192}} MiB at 8,192",
                "8 个头的权重 (float32)：n = 512 时 {{computed cost memory-512}} MiB，2048 时 {{computed cost memory-2048}} MiB，8192 时 "
                "{{computed cost memory-8192}} MiB",
            ),
        ),
        command="manyheads lab cost",
        wrong_answers=(
            WrongAnswer(
                Bilingual("Most of the operations are always in the n² part.", "运算量总是集中在 n² 那一项。"),
                Bilingual(
                    "Not for sentences: at n = 512 and d_model = 512 it is {{computed cost share-512}} % of attention, and less of the "
                    "layer, which has a feed-forward network as well.",
                    "普通句子并非如此：n = 512、d_model = 512 时，它只占注意力的 {{computed cost share-512}} %，再算上前馈网络，占比更小。",
                ),
            ),
        ),
        follow_ups=(
            FollowUp(
                Bilingual("And an RNN layer?", "RNN 一层是多少？"),
                Bilingual(
                    "O(n·d²), but its n steps must run one after the other; attention has O(1) sequential steps (Vaswani 2017, Table 1).",
                    "O(n·d²)，但 n 步必须依次进行；注意力的顺序步数是 O(1)（Vaswani 2017，表 1）。",
                ),
            ),
        ),
    ),
    Card(
        id="kv-cache",
        question=Bilingual("What is the KV cache?", "什么是 KV 缓存？"),
        answer=Bilingual(
            "When a decoder generates, the keys and values of earlier tokens do not change, because the causal mask "
            "keeps later tokens from influencing them. They are stored, and each step computes q, k and v of the new "
            "token only. The price is memory that grows with layers (L), key–value heads (g) and length (n), at b "
            "bytes per number. Queries are not stored: a past query is never used again. Generating 1,024 tokens "
            "without a cache took {{ratio cost uncached cached 1024 milliseconds}} times as long.",
            "解码器生成时，因果掩码使前面的词元不受后面影响，它们的键和值不再变化。把它们存下来，"
            "每一步只需计算新词元的 q、k、v。代价是内存，随层数 L、键值头数 g 和长度 n 增长（b 为每个数的字节数）。"
            "查询不必存：过去的查询不会再用到。生成 1024 个词元，我们测得无缓存的耗时是有缓存的 "
            "{{ratio cost uncached cached 1024 milliseconds}} 倍。",
        ),
        formula="M = 2 · L · g · d_k · n · b",
        computation=(
            Bilingual(
                "generating 1,000 tokens: {{computed kv-cache with}} tokens pass through the layers with a cache, {{computed kv-cache without}} "
                "without",
                "生成 1000 个词元，经过各层的词元总数：有缓存 {{computed kv-cache with}}，无缓存 {{computed kv-cache without}}",
            ),
            Bilingual(
                "32 layers, 32 heads of width 128, 4,096 tokens, 16 bits: {{computed kv-cache all}} GiB per sequence",
                "32 层、32 个宽 128 的头、4096 个词元、16 位：每个序列 {{computed kv-cache all}} GiB",
            ),
        ),
        command="manyheads lab cost",
        wrong_answers=(
            WrongAnswer(
                Bilingual("With the cache, generation is linear in length.", "有了 KV 缓存，生成的总开销就是线性的。"),
                Bilingual(
                    "Each new query still meets all keys so far: {{computed kv-cache without}} pairs for 1,000 tokens. What becomes linear are "
                    "projections and feed-forward networks.",
                    "每个新查询仍要与此前所有键计算：1000 个词元共 {{computed kv-cache without}} 对。变成线性的是投影和前馈网络。",
                ),
            ),
        ),
        follow_ups=(
            FollowUp(
                Bilingual("Does an encoder have a KV cache?", "编码器用 KV 缓存吗？"),
                Bilingual(
                    "No, its tokens see the future and would all change; but the keys and values of cross-attention are computed once per "
                    "sentence and kept.",
                    "不用，编码器双向可见，加一个词全都要变；但交叉注意力的键和值每句只算一次，会一直留着。",
                ),
            ),
            FollowUp(
                Bilingual("Does it help in training?", "训练时有用吗？"),
                Bilingual(
                    "No: in training all positions are computed in one pass.",
                    "没用：训练时所有位置一次算完。",
                ),
            ),
        ),
    ),
    Card(
        id="kv-share",
        question=Bilingual("What are MQA and GQA?", "MQA 和 GQA 是什么？"),
        answer=Bilingual(
            "In multi-query attention all heads share one set of keys and values; in grouped-query attention each group of heads shares one. "
            "Queries stay separate. The KV cache shrinks by the same factor, which makes decoding faster, since it is limited by reading memory. "
            "The price on text is small but clear: we measure a loss of {{mean kv-share mha text loss}} with MHA, "
            "{{mean kv-share gqa text loss}} with GQA and {{mean kv-share mqa text loss}} with MQA.",
            "MQA 让所有头共用一份键和值，GQA 让每组头共用一份，查询仍各有各的。KV 缓存按同样的倍数缩小，而解码受限于读内存，因此更快。"
            "文本上的代价不大，但看得出来：我们测得损失 MHA {{mean kv-share mha text loss}}，GQA {{mean kv-share gqa text loss}}，MQA "
            "{{mean kv-share mqa text loss}}。",
        ),
        formula="cache(GQA) / cache(MHA) = g / h,   MQA: g = 1,   MHA: g = h",
        plot=("kv-share", 1),
        computation=(
            Bilingual(
                "32 layers, 32 heads of width 128, 4,096 tokens, 16 bits: MHA {{computed kv-cache all}} GiB, GQA with 8 groups "
                "{{computed kv-cache grouped}} GiB, MQA {{computed kv-cache one}} GiB",
                "32 层、32 个宽 128 的头、4096 个词元、16 位：MHA {{computed kv-cache all}} GiB，GQA（8 组）{{computed kv-cache grouped}} GiB，"
                "MQA {{computed kv-cache one}} GiB",
            ),
        ),
        command="manyheads lab kv-share",
        wrong_answers=(
            WrongAnswer(
                Bilingual(
                    "With shared keys all heads attend to the same tokens.",
                    "键共用了，所有头看的地方就一样。",
                ),
                Bilingual(
                    "Queries differ, so weights differ: in our MQA model the divergence between heads is "
                    "{{mean kv-share mqa two divergence}} bits, in MHA {{mean kv-share mha two divergence}}; heads "
                    "that attend to the same tokens would have 0.",
                    "查询不同，权重就不同：我们的 MQA 模型里，头与头之间的散度是 "
                    "{{mean kv-share mqa two divergence}} bit，MHA 是 {{mean kv-share mha two divergence}}；"
                    "若看的地方一样，散度应为 0。",
                ),
            ),
        ),
        follow_ups=(
            FollowUp(
                Bilingual("Who uses it?", "哪些模型在用？"),
                Bilingual(
                    "Llama 2 70B, for example, has 64 heads with 8 sets of keys and values.",
                    "例如 Llama 2 70B：64 个头，8 份键和值。",
                ),
            ),
            FollowUp(
                Bilingual("Can a trained MHA model be converted?", "训练好的 MHA 模型能转成 GQA 吗？"),
                Bilingual(
                    "Yes: average the key and value matrices of each group and train for another 5 % of the original compute (Ainslie 2023).",
                    "能：把每组的键、值矩阵取平均，再用原训练量的 5 % 继续训练（Ainslie 2023）。",
                ),
            ),
        ),
    ),
)
