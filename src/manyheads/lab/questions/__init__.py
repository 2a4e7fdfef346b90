"""The questions of the lab, in the order in which `manyheads lab` lists them. A question is one file of this folder."""

from manyheads.lab.question import Question
from manyheads.lab.questions.cost_question import COST
from manyheads.lab.questions.decode_question import DECODE
from manyheads.lab.questions.dropout_question import DROPOUT
from manyheads.lab.questions.embedding_scale_question import EMBEDDING_SCALE
from manyheads.lab.questions.ffn_question import FFN
from manyheads.lab.questions.head_width_question import HEAD_WIDTH
from manyheads.lab.questions.heads_question import HEADS
from manyheads.lab.questions.kv_share_question import KV_SHARE
from manyheads.lab.questions.mask_question import MASK
from manyheads.lab.questions.norm_question import NORM
from manyheads.lab.questions.output_projection_question import OUTPUT_PROJECTION
from manyheads.lab.questions.positions_question import POSITIONS
from manyheads.lab.questions.projections_question import PROJECTIONS
from manyheads.lab.questions.residual_question import RESIDUAL
from manyheads.lab.questions.rnn_question import RNN
from manyheads.lab.questions.scale_question import SCALE
from manyheads.lab.questions.score_form_question import SCORE_FORM
from manyheads.lab.questions.smoothing_question import SMOOTHING
from manyheads.lab.questions.specialize_question import SPECIALIZE
from manyheads.lab.questions.tying_question import TYING
from manyheads.lab.questions.warm_up_question import WARM_UP

QUESTIONS: dict[str, Question] = {
    question.id: question
    for question in (
        SCALE,
        HEADS,
        HEAD_WIDTH,
        SPECIALIZE,
        OUTPUT_PROJECTION,
        NORM,
        RESIDUAL,
        PROJECTIONS,
        KV_SHARE,
        POSITIONS,
        EMBEDDING_SCALE,
        SMOOTHING,
        SCORE_FORM,
        FFN,
        TYING,
        WARM_UP,
        DROPOUT,
        MASK,
        DECODE,
        RNN,
        COST,
    )
}
