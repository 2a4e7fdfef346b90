"""References of the exercises, one file a chapter: right functions with switches that make them wrong."""

from manyheads.learn.references import attention_references, head_references
from manyheads.learn.references.reference import Reference

REFERENCES: dict[str, Reference] = {
    **attention_references.REFERENCES,
    **head_references.REFERENCES,
}
