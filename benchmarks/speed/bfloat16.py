"""Training in bfloat16 against float32 on this CPU: CPU seconds of whole updates, by width. `make bench-bfloat16`

Two trainers of the same model take turns, update by update, on the same batches of the built-in corpus, with one
thread. The ratio of a turn is float32 / bfloat16: above 1, bfloat16 is faster. Results: bfloat16.json, bfloat16.md.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import torch
from frame import stamp

from manyheads.bench import Sentences
from manyheads.model import ModelSettings, Transformer
from manyheads.tasks import Seq2Seq, Seq2SeqSettings, TrainingData
from manyheads.training import Trainer, TrainSettings

HERE = Path(__file__).resolve().parent
VOCAB_SIZE = 8000
# Name: width, layers of each stack, feed-forward width, tokens of a batch, turns.
SIZES = {
    "tiny": (128, 4, 256, 1250, 9),
    "width 128": (128, 2, 512, 1250, 9),
    "width 192": (192, 2, 768, 1250, 9),
    "width 256": (256, 2, 1024, 1250, 9),
    "width 320": (320, 2, 1280, 1250, 9),
    "width 384": (384, 2, 1536, 1250, 9),
    "width 512": (512, 2, 2048, 1250, 7),
    "width 512, 250 tokens": (512, 2, 2048, 250, 9),
    "width 1024": (1024, 2, 4096, 1250, 5),
    "base": (512, 6, 2048, 1250, 7),
}


def measure(name: str, sentences: Sentences) -> dict[str, Any]:
    width, n_layers, inner, batch_tokens, n_turns = SIZES[name]
    settings = ModelSettings(
        vocab_size=VOCAB_SIZE, width=width, n_encoder_layers=n_layers, n_decoder_layers=n_layers,
        feed_forward_width=inner, n_heads=max(1, width // 64), max_length=256,
    )  # fmt: skip
    events = {}
    for precision in ("float32", "bfloat16"):
        torch.manual_seed(1)
        model = Transformer(settings)
        task = Seq2Seq(model, sentences.tokenizer, Seq2SeqSettings())
        train = TrainSettings(steps=100, learning_rate=1e-3, warmup=100, precision=precision)
        data = task.training_task(TrainingData(sentences.encoded, batch_tokens))
        events[precision] = Trainer(model, data, train, width=width, seed=1).run()
    times: dict[str, list[float]] = {precision: [] for precision in events}
    losses: dict[str, list[float]] = {precision: [] for precision in events}
    for turn in range(n_turns + 1):
        for precision in sorted(events, reverse=turn % 2 == 0):
            started = time.process_time()
            losses[precision].append(next(events[precision]).loss)
            if turn:  # the first allocates memory
                times[precision].append(time.process_time() - started)
    ratios = [one / other for one, other in zip(times["float32"], times["bfloat16"], strict=True)]
    return {
        "width": width, "layers": n_layers, "feed_forward_width": inner, "batch_tokens": batch_tokens,
        "seconds": times, "ratios": ratios, "loss": {precision: one[-1] for precision, one in losses.items()},
    } | stamp()  # fmt: skip


def table(results: dict[str, Any]) -> str:
    lines = [
        "| model | layers | feed-forward | tokens | float32, CPU s | bfloat16, CPU s | ratio (turns) | last losses |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for name, one in results.items():
        single, half = (median(one["seconds"][precision]) for precision in ("float32", "bfloat16"))
        ratios = one["ratios"]
        lines.append(
            f"| {name} | {one['layers']} + {one['layers']} | {one['feed_forward_width']:,} | {one['batch_tokens']:,} "
            f"| {single:.3f} | {half:.3f} | {median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f}) "
            f"| {one['loss']['float32']:.3f} / {one['loss']['bfloat16']:.3f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(SIZES)}; all by default")
    names = parser.parse_args().names or list(SIZES)
    torch.set_num_threads(1)
    file = HERE / "bfloat16.json"
    results = json.loads(file.read_text()) if file.exists() else {}
    with Sentences.make() as sentences:
        for name in names:
            results[name] = measure(name, sentences)
            print(table({name: results[name]}).splitlines()[-1], flush=True)
            results = {known: results[known] for known in SIZES if known in results}
            file.write_text(json.dumps(results, indent=1) + "\n")
    page = HERE / "bfloat16.md"
    text = page.read_text() if page.exists() else "<!-- speed -->\n<!-- end of speed -->\n"
    before, _, rest = text.partition("<!-- speed -->")
    after = rest.partition("<!-- end of speed -->")[2]
    page.write_text(f"{before}<!-- speed -->\n{table(results)}\n<!-- end of speed -->{after}")


if __name__ == "__main__":
    sys.exit(main())
