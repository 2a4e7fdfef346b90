"""Why share the embedding with the output?"""

from manyheads.lab.lab_tasks import Translation
from manyheads.lab.question import LOSS, Answer, Arm, Claim, Comparison, Condition, Measure, Plot, Question, Source
from manyheads.lab.setup import Setup
from manyheads.lab.trial import train_model
from manyheads.language import Bilingual
from manyheads.model import Transformer

_N_ROWS = 256


def _trial(setup: Setup, seed: int) -> dict[str, float]:
    trained = train_model(setup, seed)
    assert isinstance(trained.model, Transformer)
    return {**trained.test_scores(_N_ROWS), "parameters": trained.model.n_parameters / 1000}


TYING = Question(
    id="tying",
    title=Bilingual("Why share the embedding with the output?", "为什么输出层与词嵌入共享权重？"),
    method=Bilingual(
        "A model with one encoder and one decoder layer learns to translate English words into Chinese characters of "
        "the built-in corpus, from 500 or from 4,000 sentence pairs. The vocabularies do not overlap. Arms share the "
        "source embedding, the target embedding and the output, or not. Because sharing removes parameters, one arm "
        "with everything shared is about as large as the one whose output is separate: its width is 64 instead of 48.",
        "编码器、解码器各一层，学习把内置语料的英文词翻译成汉字，训练数据 500 或 4000 句对，两种语言的词表互不重叠。"
        "各组的区别是源端词嵌入、目标端词嵌入和输出层是否共享。共享会减少参数，所以另设一组：全部共享，宽度由 48 "
        "增到 64，参数量与输出层独立的一组相当。",
    ),
    setup=Setup(
        model={
            "width": 48,
            "n_encoder_layers": 1,
            "n_decoder_layers": 1,
            "feed_forward_width": 96,
            "n_heads": 4,
            "norm_placement": "pre",
        },
        steps=150,
        n_rows=16,
    ),
    full={"steps": 2000},
    arms=(
        Arm("all", Bilingual("all shared", "全部共享")),
        Arm("source", Bilingual("separate source", "源端独立"), {"model.tie_source_target": False}),
        Arm("output", Bilingual("separate output", "输出层独立"), {"model.tie_output": False}),
        Arm(
            "none",
            Bilingual("nothing shared", "都不共享"),
            {"model.tie_output": False, "model.tie_source_target": False},
        ),
        Arm(
            "wide",
            Bilingual("all shared, wider", "全部共享，更宽"),
            {"model.width": 64, "model.feed_forward_width": 128},
        ),
    ),
    conditions=(
        Condition("500", Bilingual("500 sentence pairs", "500 句对"), {"task": Translation(500)}),
        Condition(
            "4000",
            Bilingual(
                "4,000 sentence pairs",
                "4000 句对",
            ),
            {"task": Translation(4000)},
        ),
    ),
    measures=(
        Measure("accuracy", Bilingual("accuracy of the next character, %", "下一个字的准确率 (%)"), "higher", True),
        LOSS,
        Measure("parameters", Bilingual("parameters, thousands", "参数量（千）"), digits=0, is_logarithmic=True),
    ),
    tuned_on="accuracy",
    learning_rates=(5e-3, 1.5e-2),
    n_tuning_seeds=1,
    trial=_trial,
    comparisons=(
        Comparison(
            "none",
            "all",
            "parameters",
            "higher",
            condition="4000",
            because=Bilingual("three matrices instead of one", "三个矩阵，而不是一个"),
        ),
        Comparison(
            "output",
            "all",
            "accuracy",
            "lower",
            condition="500",
            is_key=True,
            because=Bilingual(
                "a separate output learns each word from little data", "独立的输出层要用少量数据从头学每个词"
            ),
        ),
        Comparison(
            "output",
            "all",
            "accuracy",
            "same",
            condition="4000",
            margin=0.03,
            is_key=True,
            because=Bilingual("published models lose nothing by sharing", "已发表的模型共享后没有损失"),
        ),
        Comparison(
            "source",
            "all",
            "accuracy",
            "same",
            condition="4000",
            margin=0.03,
            because=Bilingual("the vocabularies do not overlap", "两种语言的词表不重叠"),
        ),
        Comparison(
            "output",
            "wide",
            "accuracy",
            "lower",
            condition="4000",
            because=Bilingual("with equal size, width is worth more", "参数量相同时，宽度更有用"),
        ),
    ),
    answer=Answer(
        yes=Bilingual(
            "Sharing saves parameters ({{mean tying all 4000 parameters}} instead of "
            "{{mean tying none 4000 parameters}} thousand) and costs nothing: with 4,000 sentence pairs accuracy is "
            "{{mean tying all 4000 accuracy}} % shared and {{mean tying output 4000 accuracy}} % with a separate "
            "output; with 500 pairs, {{mean tying all 500 accuracy}} and {{mean tying output 500 accuracy}} %.",
            "共享节省参数（{{mean tying all 4000 parameters}}K，都不共享为 {{mean tying none 4000 parameters}}K），"
            "而且没有代价：4000 句对时，共享的准确率为 {{mean tying all 4000 accuracy}} %，输出层独立为 "
            "{{mean tying output 4000 accuracy}} %；500 句对时分别为 {{mean tying all 500 accuracy}} % 和 "
            "{{mean tying output 500 accuracy}} %。",
        ),
        no=Bilingual(
            "Sharing saves parameters ({{mean tying all 4000 parameters}} instead of "
            "{{mean tying none 4000 parameters}} thousand), but its effect on accuracy was not as published here. A "
            "separate output changes accuracy by {{diff tying output all 500 accuracy}} points with 500 sentence "
            "pairs and by {{diff tying output all 4000 accuracy}} with 4,000, in this short training. Compared with "
            "a shared model of about the same size, it changes accuracy by {{diff tying output wide 4000 accuracy}} "
            "points.",
            "共享能节省参数（{{mean tying all 4000 parameters}}K，都不共享为 {{mean tying none 4000 parameters}}K），"
            "但对准确率的影响与文献不一致。短时间训练后，输出层独立使准确率变化 "
            "{{diff tying output all 500 accuracy}} 个百分点（500 句对）和 {{diff tying output all 4000 accuracy}} "
            "个百分点（4000 句对）。与参数量相近的共享模型相比，相差 {{diff tying output wide 4000 accuracy}} "
            "个百分点。",
        ),
    ),
    plots=(Plot("accuracy"), Plot("loss"), Plot("parameters", conditions=("4000",))),
    sources=(
        Source(
            "Press & Wolf 2017",
            Bilingual(
                "Sharing shrinks translation models to less than half of their size without harming them.",
                "共享权重可使翻译模型的参数量降到一半以下，质量不受损。",
            ),
        ),
        Source(
            "Vaswani et al. 2017, section 3.4",
            Bilingual(
                "Shares source embedding, target embedding and output; no ablation.",
                "源端词嵌入、目标端词嵌入和输出层三者共享，没有消融实验。",
            ),
        ),
    ),
    claims=(
        Claim(
            Bilingual(
                "Source and target embeddings can only be shared if both languages use the same words.",
                "两种语言的词相同，源端和目标端的词嵌入才能共享。",
            ),
            "wrong",
            Bilingual(
                "One joint vocabulary is enough. English words and Chinese characters have no token in common here, "
                "and a separate source embedding changes accuracy by {{diff tying source all 4000 accuracy}} points.",
                "只要有一个联合词表即可。这里英文词和汉字没有共用的词元，源端独立使准确率变化 "
                "{{diff tying source all 4000 accuracy}} 个百分点。",
            ),
        ),
    ),
)
