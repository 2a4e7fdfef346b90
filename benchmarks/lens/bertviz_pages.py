"""Write BertViz's pages of an attention; runs in BertViz's own environment (.peers/bertviz).

python bertviz_pages.py ATTENTION.pt TOKENS.json FOLDER NAME

NAME is head_view, model_view or head_view_one_layer. Prints the seconds that it took as JSON.
"""

import json
import sys
import time
from pathlib import Path

import torch
from bertviz import head_view, model_view


def main() -> None:
    attention_file, tokens_file, folder, name = sys.argv[1:]
    attention = torch.load(attention_file, weights_only=True)
    tokens = json.loads(Path(tokens_file).read_text("utf-8"))
    started = time.perf_counter()
    view = model_view if name == "model_view" else head_view
    layers = [0] if name.endswith("one_layer") else None
    page = view(attention, tokens, html_action="return", include_layers=layers).data
    Path(folder, f"{name}.html").write_text(f"<!doctype html><meta charset=utf-8>{page}", "utf-8")
    print(json.dumps({"write_seconds": time.perf_counter() - started}))


main()
