"""CTranslate2 behind plain FastAPI, as its users write it: the model, the tokenizer and one function.

MODEL=folder THREADS=2 BEAM=4 uvicorn --app-dir benchmarks/serve/peers ctranslate2_app:app
"""

import os

import ctranslate2
import sentencepiece
from fastapi import FastAPI
from pydantic import BaseModel

MODEL, BEAM = os.environ["MODEL"], int(os.environ["BEAM"])
translator = ctranslate2.Translator(MODEL, inter_threads=int(os.environ["THREADS"]), intra_threads=1)
tokenizer = sentencepiece.SentencePieceProcessor(f"{MODEL}/tokenizer.model")
app = FastAPI()


class Texts(BaseModel):
    texts: list[str]


@app.get("/ready")
def ready() -> dict[str, str]:
    return {"status": "ready"}


@app.post("/translate")
def translate(request: Texts) -> dict[str, list[str]]:
    tokens = tokenizer.encode(request.texts, out_type=str)
    results = translator.translate_batch(tokens, beam_size=BEAM, max_batch_size=32)
    return {"translations": tokenizer.decode([result.hypotheses[0] for result in results])}
