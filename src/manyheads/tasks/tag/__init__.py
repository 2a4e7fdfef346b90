"""The tag task: a text in, its labelled spans out, with an intent for the text if the rows have one."""

from manyheads.tasks.tag.settings import TagSettings
from manyheads.tasks.tag.tag_task import Entity, Tag, Tagging

__all__ = ["Entity", "Tag", "TagSettings", "Tagging"]
