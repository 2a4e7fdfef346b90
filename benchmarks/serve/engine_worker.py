"""The engine alone, in a process with one thread: answers each line of JSON (a list of texts) when it is done.

    python benchmarks/serve/engine_worker.py BUNDLE '{"beam": 4}'

All texts of a line go to one call of `Bundle.predictions`, which sorts them by length and chooses its own batches: the
fastest way to use the library.
"""

import json
import os
import sys

os.environ["OMP_NUM_THREADS"] = "1"

import torch

from manyheads.bundle import load


def main() -> None:
    torch.set_num_threads(1)
    bundle, decode = load(sys.argv[1]), json.loads(sys.argv[2])
    bundle.predictions(["a"], **decode)
    print("ready", flush=True)
    for line in sys.stdin:
        predictions = bundle.predictions(json.loads(line), **decode)
        print(json.dumps([prediction.answer for prediction in predictions], ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
