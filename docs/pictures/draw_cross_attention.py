"""Draw the attention weights of every cross-attention head of a bundle for one translation, as an SVG.

python docs/pictures/draw_cross_attention.py runs/quickstart/bundle "The teacher did not buy the red book." heads.svg
"""

import sys
from pathlib import Path

import manyheads as mh

if __name__ == "__main__":
    path, text, output = sys.argv[1:]
    bundle = mh.load(path)
    trace = bundle.trace(text)
    roles = {card.head: card.role for card in bundle.heads() if card.roles}
    Path(output).write_bytes(mh.draw_overview(trace, format="svg", attention="cross", roles=roles, language="en"))
