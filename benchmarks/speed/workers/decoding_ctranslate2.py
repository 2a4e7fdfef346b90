"""`translate_batch` of CTranslate2, with SentencePiece before and after it, as a user calls it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ctranslate2
import sentencepiece
from translating import Ids, serve, timed

SIZES = (512, 1024, 2048, 4096)  # batch sizes in tokens to try


class CTranslate2:
    def __init__(self, order: Mapping[str, Any]) -> None:
        self.translator = ctranslate2.Translator(
            order["exported"], compute_type=order["precision"], inter_threads=1, intra_threads=1
        )
        self.tokens: list[str] = order["tokens"]
        self.ids = {token: number for number, token in enumerate(self.tokens)}
        self.processor = sentencepiece.SentencePieceProcessor(order["tokenizer"]) if order["tokenizer"] else None
        length = order["fixed_length"]
        self.fixed = {"min_decoding_length": length, "max_decoding_length": length} if length else {}
        self.best: dict[int, dict[str, Any]] = {}  # by beam

    def tune(self, sources: Ids, beam: int) -> dict[str, Any]:
        prepared = self.prepare(sources)

        def try_one(size: int, has_scores: bool) -> float:
            self.best[beam] = {"max_batch_size": size, "return_scores": has_scores}
            return timed(lambda: self.translate(prepared, beam))[0]

        try_one(SIZES[0], False)  # warm-up
        tried = [(try_one(size, False), size, False) for size in SIZES]
        tried.append((try_one(min(tried)[1], True), min(tried)[1], True))
        _, size, has_scores = min(tried)
        self.best[beam] = {"max_batch_size": size, "return_scores": has_scores}
        return {**self.best[beam], "cpu": tried}

    def translate_file(self, source: str, target: str, beam: int) -> None:
        assert self.processor is not None
        lines = Path(source).read_text(encoding="utf-8").splitlines()
        tokens = self.processor.encode(lines, out_type=str, add_eos=True)
        results = self.translate(tokens, beam)
        texts = self.processor.decode([result.hypotheses[0] for result in results])
        Path(target).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")

    def prepare(self, sources: Ids) -> list[list[str]]:
        return [[self.tokens[number] for number in source] for source in sources]

    def translate(self, prepared: list[list[str]], beam: int) -> Any:
        # The default length_penalty is 1, as in the search of the bundle.
        return self.translator.translate_batch(
            prepared, beam_size=beam, batch_type="tokens", **self.best[beam], **self.fixed
        )

    def read(self, output: Any) -> list[list[int]]:
        return [[self.ids[token] for token in result.hypotheses[0]] for result in output]


if __name__ == "__main__":
    serve(["ctranslate2"], CTranslate2)
