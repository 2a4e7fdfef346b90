"""`Page`: what `manyheads walk` shows, its width, and the heading."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from rich.cells import set_cell_size
from rich.text import Text

from manyheads.language import pick
from manyheads.messages import Message, _
from manyheads.text.tokens.tokenizer import METASPACE
from manyheads.walks import walk_text as texts
from manyheads.walks.attention_walk import Walk
from manyheads.walks.block_walk import BlockWalk
from manyheads.walks.number_format import WHOLE, Line, labels, shortened, wrapped
from manyheads.walks.sublayer_walk import EmbeddingWalk
from manyheads.walks.toy_model import Saturation

INDENT = 4
MAX_KEYS = 24  # up to this many keys, all are shown
_N_LARGEST = 16  # of more keys, those with the largest weights


@dataclass(frozen=True)
class Page:
    """A walk, its origin, and the width of the screen."""

    walk: Walk
    origin: Literal["worked", "untrained", "bundle"]
    columns: int = 80
    saturations: Sequence[Saturation] = ()

    @property
    def width(self) -> int:
        """The width below a title, in columns."""
        return self.columns - INDENT

    @property
    def is_small(self) -> bool:
        """Whether vectors are short enough to print whole."""
        return self.walk.queries_from.shape[1] <= WHOLE

    @property
    def query_name(self) -> str:
        """The name of the query that is shown in detail."""
        return shortened(self.walk.query_names[self.walk.query])

    @property
    def written_name(self) -> str | None:
        """The token that the query's position writes, if it is in a decoder and the token is known."""
        written = self.walk.written_names
        return shortened(written[self.walk.query]) if self.walk.query < len(written) else None

    @property
    def row_names(self) -> list[str]:
        """The names of the queries; in a decoder with what they write, as in "I → love"."""
        names, written = map(shortened, self.walk.query_names), list(map(shortened, self.walk.written_names))
        return [f"{name} → {written[row]}" if row < len(written) else name for row, name in enumerate(names)]

    @property
    def block(self) -> BlockWalk:
        """What is around the attention."""
        assert self.walk.block is not None
        return self.walk.block

    @property
    def embedding(self) -> EmbeddingWalk | None:
        """The embedding of the queries."""
        block = self.block
        return block.target_embedding if block.name.startswith("decoder") else block.source_embedding

    @property
    def target_names(self) -> tuple[str, ...]:
        """What the decoder reads."""
        embedding = self.block.target_embedding
        return () if embedding is None else embedding.names

    @property
    def has_cross(self) -> bool:
        """Whether the decoder reads an encoder."""
        return self.block.decoder is not None and self.block.decoder.cross_sublayer is not None

    @property
    def shown_keys(self) -> list[int]:
        """All keys, or those with the largest weights if there are many."""
        weights = self.walk.softmax.weights[self.walk.query]
        if len(weights) <= MAX_KEYS:
            return list(range(len(weights)))
        return sorted(np.argsort(-weights, kind="stable")[:_N_LARGEST].tolist())

    @property
    def other_keys(self) -> list[int]:
        """The keys that are not shown."""
        return sorted(set(range(len(self.walk.key_names))) - set(self.shown_keys))

    @property
    def key_labels(self) -> list[str]:
        """The numbers and names of the keys, padded to one width."""
        return labels(self.walk.key_names)

    def explain(self, *explanations: Message) -> Iterator[Line]:
        """Yield explanations as wrapped lines, in the language in use."""
        for explanation in explanations:
            yield from map(Text, wrapped(str(explanation), self.width))


def show_heading(page: Page) -> Iterator[Line]:
    """Yield the text, the head and its sizes, and a note about untrained models."""
    walk = page.walk
    yield Text(_("manyheads walk: a Transformer, step by step"), style="bold")
    yield Text()
    if page.origin == "worked":
        yield Text("    " + _("The worked 3×3 example: X = W^Q, W^K = Xᵀ, one head"))
    else:
        yield from (Text(f"    {line}", style="bold") for line in wrapped(walk.text, page.width))
        if walk.answer:
            yield from (Text(f"    {line}", style="bold") for line in wrapped(f"→ {walk.answer}", page.width))
        is_cross = walk.attention.endswith("cross")
        kind = _("cross-attention") if is_cross else _("self-attention")
        widths = f"d_k = {walk.k.shape[1]}, d_v = {walk.v.shape[1]}"
        sizes = f"d_model = {walk.queries_from.shape[1]}, h = {walk.n_heads}, {widths}"
        yield Text(f"    {_title('head', '头')}{walk.attention}/{walk.head}  ({kind})")
        yield Text(f"    {_title('sizes', '尺寸')}{sizes}")
    yield Text(f"    {_title('query', '查询')}{walk.query} {page.query_name}{_reads_and_writes(page)}", style="cyan")
    if page.origin == "untrained":
        yield Text()
        for line in page.explain(texts.UNTRAINED):
            yield Text(f"    {line.plain}", style="yellow")
        if walk.answer == walk.text:
            yield from (Text(f"    {line.plain}") for line in page.explain(texts.ANSWER_IS_TEXT))
    elif any(METASPACE in name for name in (*walk.query_names, *walk.key_names)):
        yield from (Text(f"    {line.plain}", style="dim") for line in page.explain(texts.TOKENS))


def _title(english: str, chinese: str) -> str:
    return set_cell_size(pick(english, chinese), 7)


def _reads_and_writes(page: Page) -> str:
    written = page.written_name
    if written is None:
        return ""
    return _("  (reads {query_name}, writes {written})", query_name=page.query_name, written=written)
