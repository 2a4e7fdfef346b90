"""What is W^O for?"""

from functools import partial

from manyheads.lab.lab_tasks import Lookup
from manyheads.lab.probes import additivity_error, input_dependence
from manyheads.lab.question import ACCURACY, Answer, Arm, Claim, Comparison, Condition, Measure, Plot, Question, Source
from manyheads.lab.setup import Setup
from manyheads.lab.trial import count_parameters, train_model
from manyheads.lab.variants import with_output_projection
from manyheads.language import Bilingual


def _trial(setup: Setup, seed: int) -> dict[str, float]:
    trained = train_model(setup, seed)
    return {
        "accuracy": trained.test_scores()["accuracy"],
        "additivity": additivity_error(trained),
        "weights_change": input_dependence(trained),
        "parameters": count_parameters(trained.model),
    }


OUTPUT_PROJECTION = Question(
    id="output-projection",
    title=Bilingual("What is the output projection W^O for?", "输出投影 W^O 有什么用？"),
    method=Bilingual(
        "One attention layer looks up two records at once with eight heads, or one record with one head. After the heads are concatenated comes W^O, a matrix per "
        "head that mixes no heads, or nothing. One arm without W^O has a feed-forward network that is larger by the "
        "parameters of W^O.",
        "单层注意力用八个头同时查找两条记录，或用一个头查找一条。各头拼接之后，分别接 W^O、每个头各自的小矩阵（不混合各头），或什么都不接。"
        "另有一组去掉 W^O，把同样多的参数加到前馈网络中。",
    ),
    setup=Setup(
        model={"width": 64, "n_encoder_layers": 1, "feed_forward_width": 256, "n_heads": 8, "norm_placement": "pre"},
        task=Lookup(n_keys=8, n_values=8, n_lookups=2),
        steps=400,
    ),
    full={"steps": 2000},
    arms=(
        Arm("full", Bilingual("W^O", "完整的 W^O")),
        Arm(
            "block",
            Bilingual("a matrix per head", "每头一个小矩阵"),
            {"alter": partial(with_output_projection, kind="block")},
        ),
        Arm("identity", Bilingual("no W^O", "不用 W^O"), {"alter": partial(with_output_projection, kind="identity")}),
        Arm(
            "matched",
            Bilingual("no W^O, larger feed-forward", "不用 W^O，前馈网络更大"),
            {"alter": partial(with_output_projection, kind="identity"), "model.feed_forward_width": 288},
        ),
    ),
    conditions=(
        Condition("two", Bilingual("8 heads, two lookups", "8 个头，查两条")),
        Condition(
            "single",
            Bilingual("1 head, one lookup", "1 个头，查一条"),
            {"task": Lookup(n_keys=8, n_values=8), "steps": 150, "model.n_heads": 1},
        ),
    ),
    skipped=(("block", "single"), ("matched", "single")),
    measures=(
        ACCURACY,
        Measure(
            "additivity",
            Bilingual("error of the sum over heads", "逐头求和与整体输出的误差"),
            digits=6,
        ),
        Measure(
            "weights_change",
            Bilingual("attention weights that differ between two inputs, %", "两个输入之间注意力权重的差异 (%)"),
            is_percentage=True,
        ),
        Measure("parameters", Bilingual("parameters", "参数量"), digits=0),
    ),
    tuned_on="accuracy",
    learning_rates=(3e-3, 1e-2),
    n_tuning_seeds=1,
    trial=_trial,
    comparisons=(
        Comparison(
            "identity",
            "full",
            "accuracy",
            "lower",
            condition="two",
            is_key=True,
            because=Bilingual("each head can write only to its own eighth", "每个头只能写入自己的八分之一"),
        ),
        Comparison(
            "matched",
            "full",
            "accuracy",
            "lower",
            condition="two",
            is_key=True,
            because=Bilingual("what counts is the mixing, not the parameters", "关键在混合，不在参数量"),
        ),
        Comparison(
            "block",
            "identity",
            "accuracy",
            "same",
            condition="two",
            margin=0.05,
            because=Bilingual("W^V can absorb a matrix per head", "每头的小矩阵可以并入 W^V"),
        ),
        Comparison(
            "identity",
            "full",
            "accuracy",
            "same",
            condition="single",
            margin=0.05,
            because=Bilingual("with one head, W^V W^O is one matrix", "只有一个头时，W^V W^O 就是一个矩阵"),
        ),
    ),
    answer=Answer(
        yes=Bilingual(
            "W^O lets every head write to the whole vector. With eight heads and two records to find, accuracy is "
            "{{mean output-projection full two accuracy}} % with W^O, {{mean output-projection identity two accuracy}} % without, "
            "and {{mean output-projection matched two accuracy}} % without but with a larger feed-forward network. With one "
            "head, where W^V can do its work, it is {{mean output-projection full single accuracy}} % and "
            "{{mean output-projection identity single accuracy}} %.",
            "W^O 让每个头都能写入整个向量。8 个头、查两条记录时，有 W^O 的准确率为 "
            "{{mean output-projection full two accuracy}} %，没有为 {{mean output-projection identity two accuracy}} %，"
            "去掉 W^O 但加大前馈网络为 {{mean output-projection matched two accuracy}} %。只有一个头时 W^V 可以代劳，"
            "分别为 {{mean output-projection full single accuracy}} % 和 {{mean output-projection identity single accuracy}} %。",
        ),
        no=Bilingual(
            "W^O lets every head write to the whole vector, but it was not clearly needed here. With eight heads and "
            "two records to find, accuracy without it differs by "
            "{{diff output-projection identity full two accuracy}} points, and by "
            "{{diff output-projection matched full two accuracy}} with equally many parameters. A possible reason: "
            "the feed-forward network after it reads all heads, too.",
            "W^O 让每个头都能写入整个向量，但本次实验看不出非要它不可。8 个头、查两条记录时，去掉它准确率相差 "
            "{{diff output-projection identity full two accuracy}} 个百分点，参数补足后相差 "
            "{{diff output-projection matched full two accuracy}} 个百分点。可能的原因："
            "它后面的前馈网络同样能读到所有的头。",
        ),
    ),
    plots=(Plot("accuracy"),),
    sources=(
        Source(
            "Vaswani et al. 2017, section 3.2.2",
            Bilingual(
                "Defines W^O but gives no ablation; we found none published.",
                "给出了 W^O 的定义，没有消融实验；我们也没有找到公开发表的数据。",
            ),
        ),
    ),
    claims=(
        Claim(
            Bilingual(
                "W^O mixes the heads non-linearly.",
                "W^O 让各头发生非线性交互。",
            ),
            "wrong",
            Bilingual(
                "It is one matrix. Its output for all heads equals the sum of its outputs for each head alone; the "
                "relative error of the sum is {{mean output-projection full two additivity}}.",
                "它只是一个矩阵。所有头一起输入的结果，等于各头单独输入的结果之和，相对误差为 "
                "{{mean output-projection full two additivity}}。",
            ),
        ),
        Claim(
            Bilingual(
                "W^O weighs the heads dynamically, by input.",
                "W^O 会根据输入动态调整各头的权重。",
            ),
            "wrong",
            Bilingual(
                "W^O is the same for every input once it is trained. What depends on the input are the attention weights: "
                "between two inputs, {{mean output-projection full two weights_change}} % of a query's weight moves to other keys.",
                "训练之后，W^O 对任何输入都一样。随输入变化的是注意力权重：换一个输入，查询平均有 "
                "{{mean output-projection full two weights_change}} % 的权重转到别的键上。",
            ),
        ),
        Claim(
            Bilingual("Without W^O, heads cannot work together.", "没有 W^O，各头就无法配合。"),
            "wrong",
            Bilingual(
                "Eight heads without it find both records in {{mean output-projection identity two accuracy}} % of "
                "cases and in {{mean output-projection full two accuracy}} % with it, no clear difference.",
                "去掉 W^O，8 个头仍能在 {{mean output-projection identity two accuracy}} % 的情况下找对两条记录，有 "
                "W^O 时为 {{mean output-projection full two accuracy}} %，差异不明显。",
            ),
        ),
        Claim(
            Bilingual(
                "A matrix per head after attention changes nothing, because W^V can absorb it.",
                "在每个头之后加一个小矩阵没有影响，因为它可以并入 W^V。",
            ),
            "wrong",
            Bilingual(
                "Both express the same functions, and we predicted no difference. After the same number of steps, "
                "the matrix per head differs from none by {{diff output-projection block identity two accuracy}} "
                "points. It can express nothing else, but it learns less in this time.",
                "两者能表示的函数相同，我们预测没有差别。但训练步数相同时，两者相差 "
                "{{diff output-projection block identity two accuracy}} 个百分点。能表示的一样，"
                "同样时间内学到的却更少。",
            ),
        ),
    ),
)
