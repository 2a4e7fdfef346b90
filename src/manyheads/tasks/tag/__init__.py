"""The tag task: a text in, its labeled spans out, with an intent for the text if the rows have one."""

from manyheads.tasks.tag.tag_task import Tag
from manyheads.tasks.tag.tag_training import TagSettings
from manyheads.tasks.tag.tagging import Entity, Tagging

__all__ = ["Entity", "Tag", "TagSettings", "Tagging"]
