"""References of the exercises, one file a chapter: right functions with switches that make them wrong."""

from manyheads.learn.references import (
    attention_references,
    decoding_references,
    head_references,
    layer_references,
    norm_references,
    position_references,
    text_references,
    training_references,
)
from manyheads.learn.references.reference import Reference

REFERENCES: dict[str, Reference] = {
    **attention_references.REFERENCES,
    **head_references.REFERENCES,
    **norm_references.REFERENCES,
    **position_references.REFERENCES,
    **layer_references.REFERENCES,
    **training_references.REFERENCES,
    **decoding_references.REFERENCES,
    **text_references.REFERENCES,
}
