"""Every number of a Transformer, step by step from the words to the loss: the numbers, and how a terminal shows them.

May import lens and everything below.
"""

from manyheads.walks.attention_walk import Walk
from manyheads.walks.block_walk import BlockWalk, walk
from manyheads.walks.toy_model import walk_sentence, worked_example

__all__ = ["BlockWalk", "Walk", "walk", "walk_sentence", "worked_example"]
