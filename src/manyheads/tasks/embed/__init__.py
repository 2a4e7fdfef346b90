"""The embed task: a text in, one vector out. Its models are imported, not trained."""

from manyheads.tasks.embed.embed_task import Embed, EmbedSettings, TextEmbedding

__all__ = ["Embed", "EmbedSettings", "TextEmbedding"]
