"""The tag task: a text in, its labeled spans out, with an intent for the text if the rows have one."""

from manyheads.tasks.tag.settings import TagSettings
from manyheads.tasks.tag.tag_prediction import Entity, Tagging
from manyheads.tasks.tag.tag_task import Tag

__all__ = ["Entity", "Tag", "TagSettings", "Tagging"]
