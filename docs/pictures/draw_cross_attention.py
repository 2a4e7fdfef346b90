"""Draw the attention weights of every cross-attention head of a bundle for one translation, as an SVG.

    python docs/pictures/draw_cross_attention.py runs/quickstart/bundle "The old teacher sees the book." heads.svg

A `Tap` given to one forward pass is all it needs.
"""

import sys
from pathlib import Path
from xml.sax.saxutils import escape

import torch

import manyheads as mh
from manyheads.text.tokenizer import BOS, EOS

CELL, LEFT, TOP, GAP = 15, 64, 84, 14
INK, PAPER = (20, 70, 140), (255, 255, 255)


def trace(bundle: mh.Bundle, text: str) -> tuple[list[str], list[str], dict[str, torch.Tensor]]:
    """Return source tokens, target tokens, and the weights of every cross-attention: heads × target × source."""
    tokenizer, model = bundle.task.tokenizer, bundle.task.model
    (translation,) = bundle.predict([text])
    source, target = [*tokenizer.encode(text), EOS], tokenizer.encode(translation)
    tap = mh.Tap()
    with torch.inference_mode():
        model(torch.tensor([source]), torch.tensor([[BOS, *target]]), tap=tap)
    weights = {name: value[0] for name, value in tap.values.items() if name.endswith("cross.weights")}

    def tokens(words: str) -> list[str]:
        return [token.text.replace("▁", "") or "␣" for token in tokenizer.tokenize(words)]

    return [*tokens(text), "■"], [*tokens(translation), "■"], weights


def draw(text: str, source: list[str], target: list[str], weights: dict[str, torch.Tensor]) -> str:
    """Draw one map per head and one row per layer: dark where the head attends when it writes the token at the left."""
    n_heads = next(iter(weights.values())).size(0)
    wide, high = LEFT + CELL * len(source) + GAP, TOP + CELL * len(target) + GAP
    shapes = [f'<text x="16" y="26" font-size="15" font-weight="bold">{escape(text)}</text>']
    for layer, (name, value) in enumerate(weights.items()):
        for head in range(n_heads):
            x, y = head * wide, 30 + layer * high
            shapes += draw_map(f"{name.removesuffix('.weights')} · head {head}", source, target, value[head], x, y)
    width, height = n_heads * wide + 16, 30 + len(weights) * high + 8
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        "font-family=\"Helvetica, Arial, 'Noto Sans CJK SC', 'PingFang SC', 'Microsoft YaHei', sans-serif\" "
        f'font-size="11" fill="#222"><rect width="{width}" height="{height}" fill="#fff"/>\n'
        + "\n".join(shapes)
        + "\n</svg>\n"
    )


def draw_map(title: str, source: list[str], target: list[str], weights: torch.Tensor, x: int, y: int) -> list[str]:
    """Draw the map of one head."""
    shapes = [f'<text x="{x + LEFT}" y="{y + 16}" fill="#777">{escape(title)}</text>']
    for column, token in enumerate(source):
        position = f"{x + LEFT + CELL * column + 11} {y + TOP - 5}"
        shapes.append(f'<text transform="translate({position}) rotate(-60)">{escape(token)}</text>')
    size = f'width="{CELL * len(source)}" height="{CELL * len(target)}"'
    shapes.append(f'<rect x="{x + LEFT}" y="{y + TOP}" {size} fill="#f6f8fb"/>')
    for row, token in enumerate(target):
        middle = y + TOP + CELL * row + 11
        shapes.append(f'<text x="{x + LEFT - 5}" y="{middle}" text-anchor="end">{escape(token)}</text>')
        for column, weight in enumerate(weights[row].tolist()):
            if weight < 0.01:
                continue
            color = "#" + "".join(f"{round(p + (i - p) * weight):02x}" for i, p in zip(INK, PAPER, strict=True))
            position = f'x="{x + LEFT + CELL * column}" y="{y + TOP + CELL * row}"'
            shapes.append(f'<rect {position} width="{CELL - 1}" height="{CELL - 1}" fill="{color}"/>')
    return shapes


if __name__ == "__main__":
    bundle_path, sentence, output = sys.argv[1:]
    found = trace(mh.load(bundle_path), sentence)
    Path(output).write_text(draw(sentence, *found), encoding="utf-8")
