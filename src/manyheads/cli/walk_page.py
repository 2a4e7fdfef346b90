"""What `manyheads walk` shows, how wide, and what it says of it first."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from rich.text import Text

from manyheads.cli import walk_words as words
from manyheads.cli.number_format import WHOLE, Line, labels, shortened, wrapped
from manyheads.lens.attention_walk import Walk
from manyheads.lens.toy_model import Saturation
from manyheads.text.tokenizer import METASPACE

INDENT = 4
ROWS = 24  # keys that are all shown; of more, those looked at most
_MOST_LOOKED_AT = 16
_KINDS = {"self": "self-attention · 自注意力", "cross": "cross-attention · 交叉注意力"}


@dataclass(frozen=True)
class Page:
    """What is shown, how wide, and where it comes from."""

    walk: Walk
    origin: Literal["worked", "untrained", "bundle"]
    columns: int = 80
    saturations: Sequence[Saturation] = ()

    @property
    def width(self) -> int:
        """Columns for what is written under a title."""
        return self.columns - INDENT

    @property
    def is_small(self) -> bool:
        """Whether every vector can be printed whole."""
        return self.walk.queries_from.shape[1] <= WHOLE

    @property
    def query_name(self) -> str:
        """What the query in question is called."""
        return shortened(self.walk.query_names[self.walk.query])

    @property
    def shown_keys(self) -> list[int]:
        """All keys; of very many, those that are looked at most."""
        weights = self.walk.softmax.weights[self.walk.query]
        if len(weights) <= ROWS:
            return list(range(len(weights)))
        return sorted(np.argsort(-weights, kind="stable")[:_MOST_LOOKED_AT].tolist())

    @property
    def other_keys(self) -> list[int]:
        """Those that are not shown."""
        return sorted(set(range(len(self.walk.key_names))) - set(self.shown_keys))

    @property
    def key_labels(self) -> list[str]:
        """The keys' numbers and names, all of one width."""
        return labels(self.walk.key_names)

    def explain(self, *texts: words.Bilingual) -> Iterator[Line]:
        """Prose, in English and then in Chinese."""
        for language in ("english", "chinese"):
            for one in texts:
                yield from map(Text, wrapped(getattr(one, language), self.width))


def show_heading(page: Page) -> Iterator[Line]:
    """What is walked through, and how far it may be trusted to mean anything."""
    walk = page.walk
    yield Text("manyheads walk · 一步一步算注意力", style="bold")
    yield Text()
    if page.origin == "worked":
        yield Text("    The worked 3×3 example: X = W^Q, W^K = Xᵀ, one head · 3×3 例题，一个头")
    else:
        yield from (Text(f"    {line}", style="bold") for line in wrapped(walk.text, page.width))
        if walk.answer:
            yield from (Text(f"    {line}", style="bold") for line in wrapped(f"→ {walk.answer}", page.width))
        sizes = f"d_k = {walk.k.shape[1]}, d_v = {walk.v.shape[1]}"
        yield Text(f"    head · 头  {walk.attention}/{walk.head}  ({_KINDS[walk.attention.split('.')[-1]]})")
        yield Text(f"    sizes · 尺寸  d_model = {walk.queries_from.shape[1]}, {walk.n_heads} heads, {sizes}")
    yield Text(f"    query in detail · 详看的查询  {walk.query} {page.query_name}", style="cyan")
    if page.origin == "untrained":
        yield Text()
        for line in page.explain(words.UNTRAINED):
            yield Text(f"    {line.plain}", style="yellow")
        if walk.answer == walk.text:
            yield from (Text(f"    {line.plain}") for line in page.explain(words.ANSWER_IS_TEXT))
    elif any(METASPACE in name for name in (*walk.query_names, *walk.key_names)):
        yield from (Text(f"    {line.plain}", style="dim") for line in page.explain(words.TOKENS))
