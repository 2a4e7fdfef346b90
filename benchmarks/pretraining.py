"""Compare training from scratch with a warm start from a masked language model of the same text.

    python benchmarks/pretraining.py recipes/snips.toml runs/snips-masked [MASKED_STEPS [key=value …]]

The masked model is trained on the text of the recipe's training rows, without labels, and has the recipe's sizes. Then
the recipe is trained with `init_from` set to it. Compare the scores with those of a run from scratch by
`manyheads evaluate`.
"""

import subprocess
import sys
from pathlib import Path

from manyheads.run import Corpus, read_recipe

_MASKED = """\
seed = {seed}

[data]
train = ["text.txt"]

[clean]
drop_bad_encoding = false
drop_duplicates = false

[tokenizer]
kind = "{tokenizer}"
vocab_size = {vocab_size}

[task]
kind = "masked"
documents = "line"
mask_probability = 0.2

[model]
{model}

[train]
steps = {steps}
batch_tokens = 3000
schedule = "cosine"
learning_rate = 2e-3
warmup = 300
weight_decay = 0.01
ema_decay = 0.998
average_snapshots = 1
validate_every = 500
save_every = 1000
"""
_SIZES = ("width", "n_encoder_layers", "n_heads", "feed_forward_width", "activation", "positions", "norm_placement")


def main() -> None:
    """Write the text and the recipe of the masked model, train it, then train the recipe from it."""
    path, folder = Path(sys.argv[1]), Path(sys.argv[2])
    steps = int(sys.argv[3]) if len(sys.argv) > 3 else 4000
    assignments = sys.argv[4:]
    recipe = read_recipe(path, assignments)
    folder.mkdir(parents=True, exist_ok=True)
    rows = Corpus.of(recipe).train()
    with (folder / "text.txt").open("w", encoding="utf-8") as out:
        out.writelines(f"{line}\n" for line in recipe.task_class.lines(rows))
    sizes = {name: getattr(recipe.model, name) for name in _SIZES} | {"dropout": 0.1, "max_length": 256}
    masked = _MASKED.format(
        seed=recipe.seed,
        tokenizer=recipe.tokenizer.kind,
        vocab_size=recipe.tokenizer.vocab_size,
        steps=steps,
        model="\n".join(f"{name} = {value!r}" for name, value in sizes.items()),
    )
    (folder / "masked.toml").write_text(masked, encoding="utf-8")
    train = [sys.executable, "-m", "manyheads", "train"]
    subprocess.run([*train, folder / "masked.toml", "-o", folder / "masked"], check=True)
    bundle = (folder / "masked" / "bundle").resolve()
    subprocess.run([*train, path, f"init_from={bundle}", *assignments, "-o", folder / "tuned"], check=True)


if __name__ == "__main__":
    main()
