"""Cards about decoding: beam search, greedy search, sampling."""

from manyheads.lab.card import Card, FollowUp, WrongAnswer
from manyheads.language import Bilingual

DECODING_CARDS = (
    Card(
        id="beam-search",
        question=Bilingual("Greedy or beam search?", "贪心解码和束搜索有什么区别？"),
        answer=Bilingual(
            "Greedy takes the most probable token at each step and never goes back. Beam search keeps the k best partial sequences, so a modest first "
            "token can win in the end. Scores are sums of log-probabilities, which favor short outputs; a length penalty corrects this. "
            "The paper uses k = 4 and α = 0.6. In our experiment beam search finds translations with a log-probability of "
            "{{mean decode beam - log_probability}} instead of {{mean decode greedy - log_probability}}; {{mean decode beam - exact}} % "
            "instead of {{mean decode greedy - exact}} % equal the reference.",
            "贪心每步取概率最大的词，从不回头。束搜索保留 k 个最好的部分序列，开头不起眼的词也可能最终胜出。"
            "得分是对数概率之和，天然偏向短句，要用长度惩罚修正。论文取 k = 4、α = 0.6。我们的实验中，束搜索找到的译文对数概率为 {{mean decode beam - log_probability}}，贪心为 "
            "{{mean decode greedy - log_probability}}；与参考译文完全相同的占 {{mean decode beam - exact}} %，贪心为 "
            "{{mean decode greedy - exact}} %。",
        ),
        formula="score(y) = log p(y | x) / ((5 + |y|) / 6)^α",
        plot=("decode", 0),
        computation=(
            Bilingual(
                "p(a) = 0.6, then 0.4 at best; p(b) = 0.4, then 0.9: greedy {{computed beam greedy}}, beam {{computed beam beam}}",
                "p(a) = 0.6，之后最好 0.4；p(b) = 0.4，之后 0.9：贪心 {{computed beam greedy}}，束搜索 {{computed beam beam}}",
            ),
            Bilingual(
                "log p = −4 with 5 tokens against −5 with 10, α = 0.6: {{computed beam score-5}} against {{computed beam score-10}}: the longer "
                "one wins",
                "5 个词元 log p = −4，10 个词元 log p = −5，α = 0.6：{{computed beam score-5}} 对 {{computed beam score-10}}，较长的胜出",
            ),
        ),
        command="manyheads lab decode",
        wrong_answers=(
            WrongAnswer(
                Bilingual("The larger the beam, the better the translation.", "束越宽，译文越好。"),
                Bilingual(
                    "With exact search the best-scoring translation of more than 50 % of sentences is empty (Stahlberg & Byrne 2019): moderate beams are "
                    "good because they miss it.",
                    "若做精确搜索，超过 50 % 的句子得分最高的译文是空串（Stahlberg & Byrne 2019）：适中的束宽效果好，恰恰因为没搜到它。",
                ),
            ),
        ),
        follow_ups=(
            FollowUp(
                Bilingual("What does beam search cost?", "束搜索的开销是多少？"),
                Bilingual(
                    "About k times the work of greedy per step, most of it in parallel, and k caches of keys and values.",
                    "每步计算量约为贪心的 k 倍（多数可并行），还要 k 份键值缓存。",
                ),
            ),
        ),
    ),
    Card(
        id="sampling",
        question=Bilingual("What do temperature, top-k and top-p do?", "温度、top-k、top-p 各起什么作用？"),
        answer=Bilingual(
            "Temperature T divides the logits: below 1 the distribution gets sharper, above 1 flatter, and T → 0 is greedy. Top-k keeps the k most "
            "probable tokens, top-p the smallest set whose probability reaches p; what remains is renormalized. Search suits tasks with one right "
            "answer, such as translation; sampling suits open-ended text, where the most probable text is dull and repeats itself (Holtzman 2020).",
            "温度 T 除在 logits 上：小于 1 分布更尖，大于 1 更平，T → 0 就是贪心。top-k 只留概率最大的 k 个词，top-p 留累计概率达到 p 的最小集合，"
            "其余去掉后重新归一化。翻译这类答案较确定的任务用搜索；开放式写作用采样，因为概率最大的文本往往乏味、重复（Holtzman 2020）。",
        ),
        formula="pᵢ = exp(zᵢ / T) / Σⱼ exp(zⱼ / T)",
        plot=("decode", 2),
        computation=(
            Bilingual(
                "logits [3, 2, 1, 0], T = 1: {{computed sampling plain}}",
                "logits [3, 2, 1, 0]，T = 1：{{computed sampling plain}}",
            ),
            Bilingual(
                "T = 0.5: {{computed sampling cold}}; T = 2: {{computed sampling hot}}",
                "T = 0.5：{{computed sampling cold}}；T = 2：{{computed sampling hot}}",
            ),
            Bilingual(
                "top-k = 2: {{computed sampling top-k}}; top-p = 0.9: {{computed sampling top-p}}",
                "top-k = 2：{{computed sampling top-k}}；top-p = 0.9：{{computed sampling top-p}}",
            ),
        ),
        command="manyheads lab decode",
        wrong_answers=(
            WrongAnswer(
                Bilingual("Temperature changes which token is most probable.", "调温度会改变概率最大的词。"),
                Bilingual(
                    "It never changes the order: the first token leads at T = 0.5, 1 and 2 above; only the gaps change.",
                    "顺序不变：上面 T = 0.5、1、2 时都是第一个词最大，变的只是差距。",
                ),
            ),
            WrongAnswer(
                Bilingual("Top-p = 0.9 removes a tenth of the vocabulary.", "top-p = 0.9 就是去掉词表的十分之一。"),
                Bilingual(
                    "It counts probability, not tokens: here {{computed sampling n-top-p}} of 4 tokens stay, and with a confident model it may be one.",
                    "它按概率算，不按词数：这里 4 个词留下 {{computed sampling n-top-p}} 个；模型很有把握时可能只剩 1 个。",
                ),
            ),
        ),
        follow_ups=(
            FollowUp(
                Bilingual("Why top-p rather than top-k?", "top-p 比 top-k 好在哪里？"),
                Bilingual(
                    "The number of plausible tokens varies from step to step, and top-p follows it.",
                    "每一步合理的候选数量不同，top-p 能随之伸缩。",
                ),
            ),
            FollowUp(
                Bilingual("Why not sample translations?", "翻译为什么一般不采样？"),
                Bilingual(
                    "There is little to vary: {{mean decode greedy - exact}} % of our greedy translations equal the reference, "
                    "{{mean decode sample - exact}} % of the sampled ones, {{mean decode top-5 - exact}} % with top-k = 5.",
                    "没有多少可变的余地：与参考译文相同的，贪心 {{mean decode greedy - exact}} %，采样 {{mean decode sample - exact}} %，"
                    "top-k = 5 为 {{mean decode top-5 - exact}} %。",
                ),
            ),
        ),
    ),
)
