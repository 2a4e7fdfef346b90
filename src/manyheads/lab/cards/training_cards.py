"""Cards about training: label smoothing, warm-up, dropout."""

from manyheads.lab.card import Card, FollowUp, WrongAnswer
from manyheads.language import Bilingual

TRAINING_CARDS = (
    Card(
        id="smoothing",
        question=Bilingual("What is label smoothing?", "什么是标签平滑？"),
        answer=Bilingual(
            "The target is no longer 1 for the right token and 0 for the others, but 1 − ε and ε/(V − 1), with ε = "
            "0.1. The model is not rewarded for ever larger logits, so it becomes less over-confident. In the paper "
            "perplexity gets worse, BLEU better: 4.67 → 4.92 and 25.3 → 25.8 (Table 3). In our experiment accuracy "
            "does not clearly change, but calibration does: with a fifth of the training labels replaced by random "
            "ones, its error is {{mean smoothing 0 noisy calibration_error}} % without and "
            "{{mean smoothing 0.1 noisy calibration_error}} % with ε = 0.1.",
            "目标不再是正确词为 1、其余为 0，而是 1 − ε 和 ε/(V − 1)，ε = 0.1。logit 再大也不会有额外奖励，"
            "模型就不会过分自信。论文中困惑度变差、BLEU 变好：4.67 → 4.92，25.3 → 25.8（表 3）。"
            "我们的实验中准确率没有明显变化，变的是校准：五分之一训练标签换成随机标签时，校准误差不平滑为 "
            "{{mean smoothing 0 noisy calibration_error}} %，ε = 0.1 时为 "
            "{{mean smoothing 0.1 noisy calibration_error}} %。",
        ),
        formula="q(y) = 1 − ε,   q(k ≠ y) = ε / (V − 1),   L = −Σₖ q(k) log p(k)",
        plot=("smoothing", 2),
        computation=(
            Bilingual(
                "V = 5, ε = 0.1, third class right: {{computed smoothing target}}",
                "V = 5，ε = 0.1，第三类正确：{{computed smoothing target}}",
            ),
            Bilingual(
                "PyTorch's label_smoothing=0.1 gives ε/V to all classes: {{computed smoothing pytorch}}",
                "PyTorch 的 label_smoothing=0.1 把 ε/V 分给所有类：{{computed smoothing pytorch}}",
            ),
            Bilingual(
                "the lowest possible loss is {{computed smoothing lowest-loss}}, with the right logit {{computed smoothing best-gap}} above the "
                "others",
                "损失最低只能到 {{computed smoothing lowest-loss}}，此时正确类的 logit 只比其余高 {{computed smoothing best-gap}}",
            ),
        ),
        command="manyheads lab smoothing",
        wrong_answers=(
            WrongAnswer(
                Bilingual("Smoothing improves perplexity.", "标签平滑会降低困惑度。"),
                Bilingual(
                    "It makes it worse: 4.92 instead of 4.67 in the paper's Table 3, since the model aims at a flatter distribution.",
                    "反而更差：论文表 3 中从 4.67 升到 4.92，因为模型学的是更平的分布。",
                ),
            ),
            WrongAnswer(
                Bilingual("Smoothing always improves calibration.", "标签平滑总能改善校准。"),
                Bilingual(
                    "With clean labels the model becomes under-confident instead: calibration error "
                    "{{mean smoothing 0 clean calibration_error}} % without and {{mean smoothing 0.1 clean calibration_error}} % with ε = 0.1.",
                    "标签无误时，模型反而变得信心不足：校准误差不平滑 {{mean smoothing 0 clean calibration_error}} %，ε = 0.1 时 "
                    "{{mean smoothing 0.1 clean calibration_error}} %。",
                ),
            ),
        ),
        follow_ups=(
            FollowUp(
                Bilingual("How do the two definitions relate?", "两种定义怎么换算？"),
                Bilingual(
                    "They agree if PyTorch's ε is ε·V/(V − 1); with a large vocabulary they are nearly the same.",
                    "取 PyTorch 的 ε 为 ε·V/(V − 1) 就完全一致；词表很大时两者几乎相同。",
                ),
            ),
            FollowUp(
                Bilingual("Is there a drawback?", "有什么副作用？"),
                Bilingual(
                    "A teacher trained with it is worse for distillation: similarities between classes are lost (Müller 2019).",
                    "用它训练的教师模型不利于知识蒸馏：类别之间的相似信息丢了（Müller 2019）。",
                ),
            ),
        ),
    ),
    Card(
        id="warm-up",
        question=Bilingual("Why warm up the learning rate?", "学习率为什么要预热？"),
        answer=Bilingual(
            "At the start Adam's second moments rest on a few gradients, and in post-norm models gradients near the "
            "output are large; full steps can then spoil the training. So in the paper the rate rises linearly for "
            "4,000 steps and falls with 1/√step afterwards. With a peak of 0.01, our post-norm model reaches "
            "{{mean warm-up 1% post-middle accuracy}} % with warm-up over a hundredth of the steps and "
            "{{mean warm-up 25% post-middle accuracy}} % over a quarter; with a lower, tuned peak there is no clear "
            "difference.",
            "训练之初，Adam 的二阶矩只来自几个梯度，很不可靠；Post-Norm 模型靠近输出处的梯度又偏大，"
            "步子太大就可能训坏。所以论文中学习率先线性上升 4000 步，再按 1/√step 下降。峰值取 0.01 时，我们的 "
            "Post-Norm 模型预热占百分之一的步数只有 {{mean warm-up 1% post-middle accuracy}} %，占四分之一则有 "
            "{{mean warm-up 25% post-middle accuracy}} %；峰值调低到合适时，差异不明显。",
        ),
        formula="lr = d_model^(−½) · min(step^(−½), step · warmup^(−1.5))",
        plot=("warm-up", 0),
        computation=(
            Bilingual(
                "d_model = 512, warm-up 4,000: {{computed warm-up step-1}} at step 1, {{computed warm-up step-4000}} at 4,000 (peak), "
                "{{computed warm-up step-16000}} at 16,000, {{computed warm-up step-100000}} at 100,000",
                "d_model = 512，预热 4000 步：第 1 步 {{computed warm-up step-1}}，第 4000 步 {{computed warm-up step-4000}}（最高），"
                "第 16000 步 {{computed warm-up step-16000}}，第 100000 步 {{computed warm-up step-100000}}",
            ),
        ),
        command="manyheads lab warm-up",
        wrong_answers=(
            WrongAnswer(
                Bilingual("Pre-norm makes warm-up useless.", "用了 Pre-Norm，预热就没用了。"),
                Bilingual(
                    "It makes training possible without: post-norm reaches 8.45 BLEU without warm-up and about 34 "
                    "with it, pre-norm trains either way (Xiong 2020). But in our experiment pre-norm still gains: "
                    "{{mean warm-up 1% pre accuracy}} % with warm-up over a hundredth of the steps, "
                    "{{mean warm-up 25% pre accuracy}} % over a quarter, each with its best rate.",
                    "它只是让不预热也能训练：Post-Norm 不预热 8.45 BLEU，预热约 34，Pre-Norm 两种情况都能训练（Xiong "
                    "2020）。但在我们的实验里，Pre-Norm 仍能受益：预热占百分之一时 {{mean warm-up 1% pre accuracy}} "
                    "%，占四分之一时 {{mean warm-up 25% pre accuracy}} %，学习率各自调到最好。",
                ),
            ),
        ),
        follow_ups=(
            FollowUp(
                Bilingual("What happens to the rate after warm-up?", "预热之后学习率怎么变？"),
                Bilingual(
                    "In 2017 it falls with 1/√step: four times the steps, half the rate; today a cosine to nearly 0 is common.",
                    "2017 年的做法是按 1/√step 下降：步数乘 4，学习率减半；现在常用余弦退火到接近 0。",
                ),
            ),
        ),
    ),
    Card(
        id="dropout",
        question=Bilingual("Where does dropout go in a Transformer?", "Transformer 的 Dropout 加在哪里？"),
        answer=Bilingual(
            "In the paper in two places, at a rate of 0.1: on the output of every sublayer before it is added to the "
            "residual, and on the sum of embeddings and positions. Many implementations add two more: on the "
            "attention weights and inside the feed-forward network. Without dropout the base model falls from 25.8 "
            "to 24.6 BLEU (Table 3). On 100 training sentences we measure a held-out loss of "
            "{{mean dropout 0.0 few loss}} without, {{mean dropout 0.1 few loss}} with 0.1 and "
            "{{mean dropout 0.3 few loss}} with 0.3.",
            "论文里有两处，比率 0.1：每个子层的输出（与残差相加之前），以及词向量与位置编码之和。"
            "很多实现还加在注意力权重和前馈网络内部。不用 Dropout，base 模型的 BLEU 从 25.8 降到 24.6（表 3）。只有 "
            "100 个训练句子时，我们测得测试损失：不用 {{mean dropout 0.0 few loss}}，0.1 时 "
            "{{mean dropout 0.1 few loss}}，0.3 时 {{mean dropout 0.3 few loss}}。",
        ),
        formula="x ← x + Dropout(f(x)),   x₀ = Dropout(E·√d + PE)",
        plot=("dropout", 0),
        computation=(
            Bilingual(
                "rate 0.1: surviving values × {{computed dropout kept}}; on average the sum stays the same (× {{computed dropout mean}})",
                "比率 0.1：留下的值乘以 {{computed dropout kept}}，平均下来总和不变（× {{computed dropout mean}}）",
            ),
        ),
        command="manyheads lab dropout",
        wrong_answers=(
            WrongAnswer(
                Bilingual("Dropout always helps.", "Dropout 总有好处。"),
                Bilingual(
                    "It counters overfitting, but it also slows learning. With 2,000 training sentences and a short "
                    "run, held-out loss gets worse: by {{diff dropout 0.1 0.0 many loss}} with 0.1 and by "
                    "{{diff dropout 0.3 0.0 many loss}} with 0.3.",
                    "它对付的是过拟合，同时会拖慢学习。训练句子有 2000 个、训练很短时，测试损失反而变差：0.1 时 "
                    "{{diff dropout 0.1 0.0 many loss}}，0.3 时 {{diff dropout 0.3 0.0 many loss}}。",
                ),
            ),
        ),
        follow_ups=(
            FollowUp(
                Bilingual("What changes at inference?", "推理时怎么办？"),
                Bilingual(
                    "Dropout is off; nothing has to be rescaled, because training already did.",
                    "关闭即可；训练时已经放大过，推理不必再缩放。",
                ),
            ),
            FollowUp(
                Bilingual(
                    "Do rows still sum to 1 with dropout on the attention weights?",
                    "对注意力权重做 Dropout，每行还和为 1 吗？",
                ),
                Bilingual(
                    "Only on average: in a single pass a row can sum to more or to less.",
                    "只在平均意义上成立：单次前向时，一行的和可能偏大或偏小。",
                ),
            ),
        ),
    ),
)
