"""The answer cards, in the order of the page. A file of this folder has the cards of one topic."""

from manyheads.lab.card import Card
from manyheads.lab.cards.attention_cards import ATTENTION_CARDS
from manyheads.lab.cards.decoding_cards import DECODING_CARDS
from manyheads.lab.cards.efficiency_cards import EFFICIENCY_CARDS
from manyheads.lab.cards.input_cards import INPUT_CARDS
from manyheads.lab.cards.multi_head_cards import MULTI_HEAD_CARDS
from manyheads.lab.cards.norm_and_residual_cards import NORM_AND_RESIDUAL_CARDS
from manyheads.lab.cards.shape_cards import SHAPE_CARDS
from manyheads.lab.cards.training_cards import TRAINING_CARDS

CARDS: tuple[Card, ...] = (
    *ATTENTION_CARDS,
    *MULTI_HEAD_CARDS,
    *NORM_AND_RESIDUAL_CARDS,
    *INPUT_CARDS,
    *SHAPE_CARDS,
    *TRAINING_CARDS,
    *DECODING_CARDS,
    *EFFICIENCY_CARDS,
)
