"""Why multiply embeddings by √d_model?"""

import torch

from manyheads.lab.lab_tasks import Lookup, Reorder
from manyheads.lab.question import (
    ACCURACY,
    LOSS,
    Answer,
    Arm,
    Claim,
    Comparison,
    Condition,
    Measure,
    Plot,
    Question,
    Source,
)
from manyheads.lab.setup import Setup
from manyheads.lab.trial import make_model, train_model
from manyheads.language import Bilingual
from manyheads.model import Transformer
from manyheads.model.positions import SinusoidalPositions

_TARGET = 1.0  # nats
_N_POSITIONS = 16


def _trial(setup: Setup, seed: int) -> dict[str, float]:
    model = make_model(setup, seed)
    assert isinstance(model, Transformer)
    trained = train_model(setup, seed)
    return {**trained.test_scores(), "steps": trained.steps_to(_TARGET), "ratio": _magnitude_ratio(model)}


@torch.no_grad()
def _magnitude_ratio(model: Transformer) -> float:
    """The length of the embeddings as the model adds them, divided by that of sinusoids of its width."""
    embedding = model.source_embedding
    tokens = embedding.scale * embedding.token_embedding.weight.norm(dim=-1).mean()
    sinusoids = SinusoidalPositions(model.settings.width)(torch.arange(_N_POSITIONS)[None]).norm(dim=-1).mean()
    return float(tokens / sinusoids)


EMBEDDING_SCALE = Question(
    id="embedding-scale",
    title=Bilingual("Why multiply embeddings by √d_model?", "词嵌入为什么要乘 √d_model？"),
    method=Bilingual(
        "One layer of width 64 learns to look up a record by its key, where positions do not matter, with sinusoidal and "
        "with rotary positions; and to repeat the previous symbol, where they do. Embeddings start as N(0, 1/64), so their "
        "length is about 1, and are multiplied by √64 or left as they are. Sinusoids have length √32. The output shares "
        "the weights of the embedding and is not scaled in either arm.",
        "宽度 64 的单层模型学习两种任务：按键查找（与位置无关），分别用正弦和旋转位置编码；写出前一个符号（依赖位置）。"
        "词嵌入初始为 N(0, 1/64)，长度约为 1，乘或不乘 √64；正弦编码的长度为 √32。输出层与词嵌入共享权重，两组都不缩放。",
    ),
    setup=Setup(
        model={
            "width": 64,
            "n_encoder_layers": 1,
            "feed_forward_width": 128,
            "n_heads": 2,
            "norm_placement": "pre",
        },
        steps=300,
        n_rows=32,
    ),
    full={"steps": 2000},
    arms=(
        Arm("scaled", Bilingual("× √d_model", "乘 √d_model"), {"model.scale_embedding": True}),
        Arm("unscaled", Bilingual("not scaled", "不缩放"), {"model.scale_embedding": False}),
    ),
    conditions=(
        Condition(
            "sinusoidal",
            Bilingual("lookup, sinusoidal positions", "查找，正弦位置编码"),
            {"task": Lookup(), "model.positions": "sinusoidal"},
        ),
        Condition(
            "rotary",
            Bilingual("lookup, rotary positions", "查找，旋转位置编码"),
            {"task": Lookup(), "model.positions": "rotary"},
        ),
        Condition(
            "order",
            Bilingual("previous symbol, sinusoidal positions", "前一个符号，正弦位置编码"),
            {"task": Reorder("previous", lengths=(4, 16)), "model.positions": "sinusoidal"},
        ),
    ),
    measures=(
        ACCURACY,
        LOSS,
        Measure(
            "steps",
            Bilingual("steps to a loss of 1 nat", "损失降到 1 nat 所需步数"),
            "lower",
            digits=0,
            is_censored=True,
        ),
        Measure(
            "ratio",
            Bilingual("length of embeddings / length of sinusoids at the start", "初始词嵌入长度 / 正弦编码长度"),
            digits=2,
            is_logarithmic=True,
        ),
    ),
    tuned_on="accuracy",
    learning_rates=(3e-3, 1e-2),
    trial=_trial,
    comparisons=(
        Comparison(
            "unscaled",
            "scaled",
            "ratio",
            "lower",
            condition="sinusoidal",
            because=Bilingual("√d_model is the factor itself", "√d_model 就是这个倍数"),
        ),
        Comparison(
            "unscaled",
            "scaled",
            "accuracy",
            "lower",
            condition="sinusoidal",
            is_key=True,
            because=Bilingual(
                "sinusoids outweigh unscaled embeddings",
                "不缩放的词嵌入被正弦编码淹没",
            ),
        ),
        Comparison(
            "unscaled",
            "scaled",
            "accuracy",
            "same",
            condition="rotary",
            margin=0.05,
            because=Bilingual("nothing is added; pre-norm removes the scale", "没有相加，前置归一化又消去了尺度"),
        ),
        Comparison(
            "unscaled",
            "scaled",
            "steps",
            "higher",
            condition="order",
            because=Bilingual(
                "sinusoids outweigh the symbols here, too",
                "符号同样会被正弦编码淹没",
            ),
        ),
    ),
    answer=Answer(
        yes=Bilingual(
            "Without the factor, embeddings are much shorter than the sinusoids that are added to them. The ratio of "
            "lengths is {{mean embedding-scale unscaled sinusoidal ratio}} instead of "
            "{{mean embedding-scale scaled sinusoidal ratio}}, and lookup reaches "
            "{{mean embedding-scale unscaled sinusoidal accuracy}} % instead of "
            "{{mean embedding-scale scaled sinusoidal accuracy}} % in this short training. With rotary positions, "
            "where nothing is added, leaving out the factor changes accuracy by "
            "{{diff embedding-scale unscaled scaled rotary accuracy}} points. Where order is the task, it changes "
            "the steps to a loss of 1 nat by {{diff embedding-scale unscaled scaled order steps}}.",
            "不乘这个系数，词嵌入比与它相加的正弦编码短得多。长度比为 "
            "{{mean embedding-scale unscaled sinusoidal ratio}}，乘了为 "
            "{{mean embedding-scale scaled sinusoidal ratio}}；短时间训练后，查找任务的准确率为 "
            "{{mean embedding-scale unscaled sinusoidal accuracy}} %，乘了为 "
            "{{mean embedding-scale scaled sinusoidal accuracy}} %。旋转位置编码不与词嵌入相加，此时不乘使准确率变化 "
            "{{diff embedding-scale unscaled scaled rotary accuracy}} 个百分点。任务本身依赖顺序时，不乘使损失降到 1 "
            "nat 所需的步数变化 {{diff embedding-scale unscaled scaled order steps}}。",
        ),
        no=Bilingual(
            "The prediction did not hold here: without the factor, the accuracy of lookup with sinusoids changes by "
            "{{diff embedding-scale unscaled scaled sinusoidal accuracy}} points.",
            "本次实验没有得到预测的结果：正弦位置编码下不乘这个系数，查找的准确率变化 "
            "{{diff embedding-scale unscaled scaled sinusoidal accuracy}} 个百分点。",
        ),
    ),
    plots=(Plot("accuracy"), Plot("steps"), Plot("ratio", conditions=("sinusoidal",))),
    sources=(
        Source(
            "Vaswani et al. 2017, section 3.4",
            Bilingual(
                "Multiplies the shared embeddings by √d_model without a reason or an ablation; we found none published.",
                "对共享的词嵌入乘 √d_model，没有说明理由，也没有消融实验；我们没有找到公开发表的数据。",
            ),
        ),
    ),
    claims=(
        Claim(
            Bilingual(
                "Embeddings are multiplied by √d_model so that they and the positions have the same magnitude.",
                "词嵌入乘 √d_model，是为了与位置编码处在同一量级。",
            ),
            "holds",
            Bilingual(
                "The ratio of lengths is {{mean embedding-scale scaled sinusoidal ratio}} with the factor and "
                "{{mean embedding-scale unscaled sinusoidal ratio}} without it, and the task that needs the tokens "
                "changes by {{diff embedding-scale unscaled scaled sinusoidal accuracy}} points without it. The "
                "paper gives no reason; this one applies to N(0, 1/d_model) embeddings with added sinusoids only.",
                "乘了之后两者长度之比为 {{mean embedding-scale scaled sinusoidal ratio}}，不乘为 "
                "{{mean embedding-scale unscaled sinusoidal ratio}}；不乘时查找任务相差 "
                "{{diff embedding-scale unscaled scaled sinusoidal accuracy}} 个百分点。论文没有说明理由；"
                "这一解释的前提是词嵌入按 N(0, 1/d_model) 初始化，并且与正弦编码相加。",
            ),
        ),
        Claim(
            Bilingual("Without the factor every task suffers.", "不乘 √d_model，所有任务都会变差。"),
            "wrong",
            Bilingual(
                "With rotary positions, lookup changes by {{diff embedding-scale unscaled scaled rotary accuracy}} "
                "points without it. Repeating the previous symbol with sinusoids shows no clear difference: "
                "{{diff embedding-scale unscaled scaled order steps}} steps.",
                "用旋转位置编码时，不乘使查找任务变化 {{diff embedding-scale unscaled scaled rotary accuracy}} "
                "个百分点。用正弦编码写出前一个符号，没有明显差异：步数变化 "
                "{{diff embedding-scale unscaled scaled order steps}}。",
            ),
        ),
    ),
)
