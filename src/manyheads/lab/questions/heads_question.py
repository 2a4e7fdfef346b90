"""Why many heads?"""

from manyheads.lab.lab_tasks import Lookup
from manyheads.lab.probes import head_row_sums
from manyheads.lab.question import ACCURACY, Answer, Arm, Claim, Comparison, Condition, Measure, Plot, Question, Source
from manyheads.lab.setup import Setup
from manyheads.lab.trial import count_parameters, train_model
from manyheads.language import Bilingual


def _trial(setup: Setup, seed: int) -> dict[str, float]:
    trained = train_model(setup, seed)
    one_head, all_heads = head_row_sums(trained)
    return {
        "accuracy": trained.test_scores()["accuracy"],
        "parameters": count_parameters(trained.model),
        "one_head_sum": one_head,
        "all_heads_sum": all_heads,
    }


def _arm(n_heads: int) -> Arm:
    return Arm(
        str(n_heads),
        Bilingual(f"{n_heads} head{'s' if n_heads > 1 else ''}", f"{n_heads} 个头"),
        {"model.n_heads": n_heads},
    )


HEADS = Question(
    id="heads",
    title=Bilingual("Why many heads?", "为什么要用多头注意力？"),
    method=Bilingual(
        "An attention layer of width 64 is split into 1 to 16 heads, which leaves the number of parameters as it is. It "
        "looks up one record, or two records at once. The last arm has two layers with one head each and smaller "
        "feed-forward networks: as many matrix entries as one layer.",
        "宽度为 64 的注意力层分成 1 到 16 个头，参数量不变。任务是按键查找一条记录，或同时查找两条记录。"
        "最后一组是两层、每层一个头，并缩小前馈网络，使矩阵参数总数与单层相同。",
    ),
    setup=Setup(
        model={"width": 64, "n_encoder_layers": 1, "feed_forward_width": 256, "norm_placement": "pre"},
        task=Lookup(n_keys=8, n_values=8),
        steps=400,
    ),
    full={"steps": 2000},
    arms=(
        *(_arm(n_heads) for n_heads in (1, 2, 4, 8, 16)),
        Arm(
            "deep",
            Bilingual("1 head, 2 layers", "1 个头，2 层"),
            {"model.n_heads": 1, "model.n_encoder_layers": 2, "model.feed_forward_width": 64},
        ),
    ),
    conditions=(
        Condition("two", Bilingual("two lookups", "查找两条记录"), {"task": Lookup(n_keys=8, n_values=8, n_lookups=2)}),
        Condition("one", Bilingual("one lookup", "查找一条记录"), {"steps": 150}),
    ),
    measures=(
        ACCURACY,
        Measure("parameters", Bilingual("parameters", "参数量"), digits=0),
        Measure("one_head_sum", Bilingual("sum of one head's weights for a query", "每个头对一个查询的权重之和")),
        Measure("all_heads_sum", Bilingual("sum over all heads of a layer", "一层所有头的权重之和")),
    ),
    tuned_on="accuracy",
    n_tuning_seeds=1,
    trial=_trial,
    comparisons=(
        Comparison(
            "2",
            "1",
            "accuracy",
            "higher",
            condition="two",
            is_key=True,
            because=Bilingual(
                "one softmax has to share its weight between two records", "一个 softmax 要把权重分给两条记录"
            ),
        ),
        Comparison(
            "8",
            "1",
            "accuracy",
            "higher",
            condition="two",
            is_key=True,
            because=Bilingual(
                "several heads attend to several records at once",
                "多个头可以同时看多条记录",
            ),
        ),
        Comparison(
            "16",
            "8",
            "accuracy",
            "lower",
            condition="two",
            because=Bilingual(
                "queries and keys of width 4 tell fewer records apart", "宽度只有 4 的查询和键分辨力不足"
            ),
        ),
        Comparison(
            "deep",
            "1",
            "accuracy",
            "higher",
            condition="two",
            because=Bilingual("a second layer can look up the second record", "第二层可以去查第二条记录"),
        ),
        Comparison(
            "deep",
            "2",
            "accuracy",
            "same",
            condition="two",
            margin=0.1,
            because=Bilingual("two heads in sequence do what two in parallel do", "两个头串联与并联作用相当"),
        ),
        Comparison(
            "8",
            "1",
            "accuracy",
            "same",
            condition="one",
            margin=0.05,
            because=Bilingual("one record needs one head only", "只查一条记录，一个头就够"),
        ),
    ),
    answer=Answer(
        yes=Bilingual(
            "Several heads can attend to several positions at once. With two records to find, one head reaches an "
            "accuracy of {{mean heads 1 two accuracy}} %, two heads {{mean heads 2 two accuracy}} % and eight heads "
            "{{mean heads 8 two accuracy}} %, with the same number of parameters. With one record to find, where one "
            "head should be enough, one head reaches {{mean heads 1 one accuracy}} % and eight heads "
            "{{mean heads 8 one accuracy}} %. From 8 to 16 heads, accuracy with two records changes by "
            "{{diff heads 16 8 two accuracy}} points.",
            "多个头可以同时关注多个位置。查找两条记录时，参数量相同，1 个头的准确率为 {{mean heads 1 two accuracy}} "
            "%，2 个头为 {{mean heads 2 two accuracy}} %，8 个头为 {{mean heads 8 two accuracy}} %。只查一条记录时，"
            "照理一个头就够，但 1 个头为 {{mean heads 1 one accuracy}} %，8 个头为 {{mean heads 8 one accuracy}} %。"
            "查两条记录时，从 8 个头增加到 16 个头，准确率变化 {{diff heads 16 8 two accuracy}} 个百分点。",
        ),
        no=Bilingual(
            "Here more heads did not clearly help in every case. With two records to find, two heads differ from one "
            "by {{diff heads 2 1 two accuracy}} points, eight by {{diff heads 8 1 two accuracy}}.",
            "本次实验中，增加头数并非总有明显好处。查找两条记录时，与 1 个头相比，2 个头相差 "
            "{{diff heads 2 1 two accuracy}} 个百分点，8 个头相差 {{diff heads 8 1 two accuracy}} 个百分点。",
        ),
    ),
    plots=(Plot("accuracy", conditions=("two",)), Plot("accuracy", conditions=("one",))),
    sources=(
        Source(
            "Vaswani et al. 2017, Table 3",
            Bilingual(
                "BLEU with 1, 4, 8, 16 and 32 heads of the same total width: 24.9, 25.5, 25.8, 25.8, 25.4.",
                "总宽度不变，头数为 1、4、8、16、32 时，BLEU 依次为 24.9、25.5、25.8、25.8、25.4。",
            ),
        ),
        Source(
            "Voita et al. 2019",
            Bilingual(
                "38 of 48 encoder heads can be pruned for a loss of 0.15 BLEU.",
                "编码器 48 个头剪去 38 个，BLEU 只下降 0.15。",
            ),
        ),
        Source(
            "Liu et al. 2021",
            Bilingual(
                "A single-head Transformer of 384 layers has as many heads as BERT-large (24 layers of 16) and does better, "
                "once its training is stabilized: depth can replace heads, but is harder to train.",
                "384 层的单头 Transformer 与 BERT-large（24 层、每层 16 头）总头数相同；训练稳定之后，效果更好："
                "深度可以代替头数，只是更难训练。",
            ),
        ),
    ),
    claims=(
        Claim(
            Bilingual(
                "Eight heads gain 2 to 3 BLEU over one head on WMT 2014 English–German.",
                "在 WMT 2014 英德翻译上，8 个头比单头高 2–3 个 BLEU。",
            ),
            "wrong",
            Bilingual(
                "The paper's Table 3 reports 25.8 and 24.9: a gain of 0.9. With 32 heads, BLEU falls back to 25.4. The gain "
                "depends on the task: here it is {{diff heads 8 1 two accuracy}} points of accuracy with two records to find and "
                "{{diff heads 8 1 one accuracy}} with one.",
                "论文表 3 中分别是 25.8 和 24.9，只高 0.9；32 个头又回落到 25.4。提升多少取决于任务：这里查两条记录时，准确率相差 "
                "{{diff heads 8 1 two accuracy}} 个百分点，查一条时相差 {{diff heads 8 1 one accuracy}} 个百分点。",
            ),
        ),
        Claim(
            Bilingual("The attention weights of all heads sum to 1.", "所有头的注意力权重之和为 1。"),
            "wrong",
            Bilingual(
                "The weights of each head sum to {{mean heads 8 two one_head_sum}}. Those of eight heads together sum to "
                "{{mean heads 8 two all_heads_sum}}: every head has a softmax of its own.",
                "每个头的权重之和是 {{mean heads 8 two one_head_sum}}，8 个头合计是 {{mean heads 8 two all_heads_sum}}："
                "每个头各自做 softmax。",
            ),
        ),
        Claim(
            Bilingual("Many heads add parameters to learn.", "多头是为了增加可学习的参数。"),
            "wrong",
            Bilingual(
                "One head and sixteen heads of the same total width have {{mean heads 1 two parameters}} and "
                "{{mean heads 16 two parameters}} parameters.",
                "总宽度不变时，1 个头的模型有 {{mean heads 1 two parameters}} 个参数，16 个头有 "
                "{{mean heads 16 two parameters}} 个。",
            ),
        ),
        Claim(
            Bilingual("The more heads, the better.", "头越多越好。"),
            "wrong",
            Bilingual(
                "At a fixed width, more heads are narrower heads. From 8 to 16 heads there is no clear gain here "
                "({{diff heads 16 8 two accuracy}} points), and in the paper BLEU falls by 0.4 from 16 to 32 heads.",
                "总宽度固定，头越多就越窄。这里从 8 个头增加到 16 个头没有明显提升（{{diff heads 16 8 two accuracy}} "
                "个百分点）；论文中从 16 个头增加到 32 个头，BLEU 下降 0.4。",
            ),
        ),
        Claim(
            Bilingual("To find one thing, one head is enough.", "只找一样东西，一个头就够了。"),
            "half",
            Bilingual(
                "One head can do it in principle. We predicted no difference and found one: after the same number of "
                "steps eight heads differ from one by {{diff heads 8 1 one accuracy}} points. A possible reason, "
                "which we did not test: with more heads, it is more likely that one of them starts well.",
                "原则上一个头就能做到。我们预测没有差别，结果并非如此：训练步数相同，8 个头与 1 个头相差 "
                "{{diff heads 8 1 one accuracy}} 个百分点。可能的原因（未经验证）：头越多，"
                "越可能有一个头的初始值恰好合适。",
            ),
        ),
        Claim(
            Bilingual("Layers can replace heads.", "可以用层数代替头数。"),
            "half",
            Bilingual(
                "Liu et al. report it for very deep models. In this short training, two layers with one head "
                "differ from one layer with two heads by {{diff heads deep 2 two accuracy}} points, contrary to our prediction.",
                "Liu 等人在很深的模型上观察到这一点。在这里的短训练中，两层各一个头与一层两个头相差 "
                "{{diff heads deep 2 two accuracy}} 个百分点，与我们的预测相反。",
            ),
        ),
    ),
)
