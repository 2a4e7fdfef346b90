"""manyheads, with the requested engine; files are translated as `manyheads predict` does."""

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

from manyheads.answer.request import AnswerOptions
from manyheads.bundle import load
from manyheads.cli.rendering.answer_lines import AnswerLines, PredictOptions
from manyheads.cli.rendering.output import open_output
from manyheads.decode import DecodeSettings, EngineSelector, Hypothesis, SpecialTokens
from manyheads.decode.native.loading import library
from manyheads.model import ModelSettings, Transformer
from manyheads.model.weights import load_weights
from manyheads.text.reading.readers import read_lines


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
            library()  # build it before anything is measured
        self.model, self.special_tokens = model, special_tokens
        self.engine = EngineSelector(order["engine"], is_int8=is_int8)
        if order["bundle"]:
            self.bundle = replace(bundle, engine=self.engine)

    def tune(self, sources: Ids, beam: int) -> dict[str, Any]:
        return {}

    def translate_file(self, source: str, target: str, beam: int) -> None:
        changes = {"method": "greedy"} if beam == 1 else {"beam": beam}
        lines = AnswerLines(self.bundle, PredictOptions(Path(), AnswerOptions(changes)))
        with open_output(Path(target), source) as stream:
            for line in lines.write(list(read_lines(source)), 1):
                stream.write(line + "\n")

    def prepare(self, sources: Ids) -> Ids:
        return sources

    def translate(self, prepared: Ids, beam: int) -> list[list[Hypothesis]]:
        settings = DecodeSettings(
            method="greedy" if beam == 1 else "beam",
            beam=beam,
            max_new_tokens=self.fixed_length or None,
            length_penalty=1.0,
        )
        engine = self.engine.select(self.model, self.special_tokens, settings)
        if self.engine.fallback:
            raise RuntimeError(self.engine.fallback)  # a fallback to torch must not be measured as another engine
        return engine.generate(prepared, settings, list(range(len(prepared))))

    def read(self, output: list[list[Hypothesis]]) -> list[list[int]]:
        return [list(found[0].ids) for found in output]


if __name__ == "__main__":
    serve(["manyheads", "torch"], Manyheads)
