"""manyheads translating, by the engine that it is told; files as `manyheads predict` does it."""

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

if os.environ.get("MANYHEADS_SRC"):
    sys.path.insert(0, os.environ["MANYHEADS_SRC"])

import torch
from safetensors.torch import load_file
from translating import Ids, serve

from manyheads.bundle import load
from manyheads.cli.output import open_output
from manyheads.cli.predict import _Writer
from manyheads.decode import DecodeSettings, EngineSelector, Hypothesis, SpecialTokens
from manyheads.decode.native.library import library
from manyheads.model import ModelSettings, Transformer
from manyheads.model.weights import load_weights
from manyheads.text.readers import read_lines


class Manyheads:
    def __init__(self, order: Mapping[str, Any]) -> None:
        torch.set_num_threads(1)
        self.fixed_length = order["fixed_length"]
        is_int8 = order["precision"] == "int8"
        special_tokens = SpecialTokens(bos=2, eos=3, pad=0, forbidden=(0, 1, 2, *([3] if self.fixed_length else [])))
        if order["bundle"]:
            bundle = load(order["bundle"])
            model = bundle.task.model
        else:
            model = Transformer(ModelSettings(**order["settings"])).eval()
            load_weights(model, load_file(order["weights"]), order["weights"])
        if order["engine"] == "native":
            library()  # built now, if it never was: what the engine tells later is why it cannot
        self.engine = EngineSelector(model, special_tokens, order["engine"], None, _refuse, is_int8=is_int8)
        if order["bundle"]:
            self.bundle = replace(bundle, engine_task=replace(bundle.task, engine=self.engine))

    def tune(self, sources: Ids, beam: int) -> dict[str, Any]:
        return {}

    def translate_file(self, source: str, target: str, beam: int) -> None:
        changes = {"method": "greedy"} if beam == 1 else {"beam": beam}
        writer = _Writer(self.bundle, changes, as_json=False)
        with open_output(Path(target), source) as stream:
            for line in writer.answer(list(read_lines(source)), 1):
                stream.write(line + "\n")

    def prepare(self, sources: Ids) -> Ids:
        return sources

    def translate(self, prepared: Ids, beam: int) -> list[list[Hypothesis]]:
        # Of sources of one length: so many ids and no more.
        extra = self.fixed_length - len(prepared[0]) if self.fixed_length else 50
        settings = DecodeSettings(
            method="greedy" if beam == 1 else "beam", beam=beam, max_new_tokens=extra, length_penalty=1.0
        )
        return self.engine.choose(settings).generate(prepared, settings, list(range(len(prepared))))

    def read(self, given: list[list[Hypothesis]]) -> list[list[int]]:
        return [list(found[0].ids) for found in given]


def _refuse(line: str) -> None:
    raise RuntimeError(line)  # an engine that lets the reference do its work is not measured


if __name__ == "__main__":
    serve(["manyheads", "torch"], Manyheads)
