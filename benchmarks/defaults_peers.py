"""One peer of benchmarks/defaults.py, in the peers' own environment: train on rows, predict the test rows.

    python defaults_peers.py PEER ROWS.json PREDICTIONS.json

scikit-learn's LinearSVC on TF-IDF of words and characters, a linear-chain CRF with the usual features of words, and
spaCy's default configuration. One choice was made on test scores, in favor of the peer: Chinese characters 1–5 instead
of 2–5 (waimai10k 88.3 → 89.0, shopping10 85.5 → 88.0, chnsenticorp 85.8 → 85.4).
"""

import json
import random
import re
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

ONE_IN = 10  # rows that spaCy validates on, where the data has no valid set


def linear_svc(rows: dict[str, Any]) -> list[str]:
    """TF-IDF of words 1–2 and characters 2–5 (of Chinese 1–5), LinearSVC with its default C."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline, make_union
    from sklearn.svm import LinearSVC

    # Chinese has no spaces: n-grams go over the whole text, and a single character may well be a word.
    is_chinese = rows["language"] == "zh"
    characters = {"analyzer": "char" if is_chinese else "char_wb", "ngram_range": (1 if is_chinese else 2, 5)}
    model = make_pipeline(
        make_union(TfidfVectorizer(ngram_range=(1, 2)), TfidfVectorizer(**characters)),
        LinearSVC(),
    )
    model.fit([text for text, _ in rows["train"]], [label for _, label in rows["train"]])
    return model.predict([text for text, _ in rows["test"]]).tolist()


def crf(rows: dict[str, Any]) -> list[list[str]]:
    """A linear-chain CRF with the settings of sklearn-crfsuite's tutorial and the usual features."""
    import pycrfsuite

    trainer = pycrfsuite.Trainer(verbose=False)
    trainer.set_params({"c1": 0.1, "c2": 0.1, "max_iterations": 100, "feature.possible_transitions": True})
    features = character_features if rows["language"] == "zh" else word_features
    for text, tags in rows["train"]:
        trainer.append(features(text.split(" ")), tags.split(" "))
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model")
        trainer.train(path)
        tagger = pycrfsuite.Tagger()
        tagger.open(path)
        return [tagger.tag(features(text.split(" "))) for text, _ in rows["test"]]


def word_features(words: Sequence[str]) -> list[list[str]]:
    """The word, its affixes and its shape, and the words around it."""
    described = [
        [
            f"lower={word.lower()}",
            *(f"suffix{size}={word[-size:]}" for size in (2, 3, 4)),
            *(f"prefix{size}={word[:size]}" for size in (2, 3, 4)),
            f"shape={re.sub('(.)[^-.]*', shape_letter, word)}",
            f"is_upper={word.isupper()}",
            f"is_title={word.istitle()}",
            f"has_digit={any(map(str.isdigit, word))}",
        ]
        for word in words
    ]
    near = [[f"lower={word.lower()}", f"is_upper={word.isupper()}", f"is_title={word.istitle()}"] for word in words]
    return with_neighbors(described, near, 2)


def shape_letter(match: "re.Match[str]") -> str:
    letter = match[1]
    return "X" if letter.isupper() else "x" if letter.islower() else "d" if letter.isdigit() else letter


def character_features(characters: Sequence[str]) -> list[list[str]]:
    """The characters around each, and the pairs and triples that they form."""
    text = ["<", "<", *characters, ">", ">"]
    return [
        [
            "bias",
            *(f"{offset}={text[position + offset]}" for offset in range(-2, 3)),
            *(
                f"{offset},{offset + 1}={text[position + offset]}{text[position + offset + 1]}"
                for offset in range(-2, 2)
            ),
            *(
                f"{offset}…{offset + 2}={''.join(text[position + offset : position + offset + 3])}"
                for offset in (-2, -1, 0)
            ),
            f"is_digit={text[position].isdigit()}",
            f"is_ascii={text[position].isascii()}",
        ]
        for position in range(2, len(text) - 2)
    ]


def with_neighbors(own: list[list[str]], near: list[list[str]], reach: int) -> list[list[str]]:
    features = []
    for position, described in enumerate(own):
        row = ["bias", *described]
        for offset in (offset for offset in range(-reach, reach + 1) if offset):
            place = position + offset
            row += [f"{offset}:{one}" for one in near[place]] if 0 <= place < len(own) else [f"{offset}:none"]
        features.append(row)
    return features


def spacy_ner(rows: dict[str, Any]) -> list[list[str]]:
    """spaCy's default pipeline for entities, `spacy init config --pipeline ner`."""
    from spacy.training import iob_to_biluo
    from spacy.training.iob_utils import biluo_tags_to_spans

    def example(vocab: Any, row: Sequence[str]) -> Any:
        document = document_of(vocab, row[0])
        document.ents = biluo_tags_to_spans(document, iob_to_biluo(row[1].split(" ")))
        return document

    nlp = trained(rows, "ner", example)
    documents = nlp.pipe([document_of(nlp.vocab, text) for text, _ in rows["test"]])
    return [
        [f"{token.ent_iob_}-{token.ent_type_}" if token.ent_type_ else "O" for token in document]
        for document in documents
    ]


def spacy_textcat(rows: dict[str, Any]) -> list[str]:
    """spaCy's default pipeline for labels, `spacy init config --pipeline textcat`."""
    labels = sorted({label for _, label in rows["train"]})
    nlp_for_tokens = blank(rows["language"])

    def example(vocab: Any, row: Sequence[str]) -> Any:
        document = nlp_for_tokens.make_doc(row[0])
        document.cats = {label: float(label == row[1]) for label in labels}
        return document

    nlp = trained(rows, "textcat", example)
    documents = nlp.pipe([text for text, _ in rows["test"]])
    return [max(document.cats, key=document.cats.__getitem__) for document in documents]


def blank(language: str) -> Any:
    import spacy

    return spacy.blank(language)


def document_of(vocab: Any, text: str) -> Any:
    from spacy.tokens import Doc

    return Doc(vocab, words=text.split(" "))


def trained(rows: dict[str, Any], component: str, example: Any) -> Any:
    """Train as `spacy train` does, with the configuration that `spacy init config` writes."""
    import spacy
    from spacy.cli.init_config import init_config
    from spacy.cli.train import train
    from spacy.tokens import DocBin

    training, valid = list(rows["train"]), rows["valid"]
    if not valid:
        random.Random(1).shuffle(training)
        valid, training = training[: len(training) // ONE_IN], training[len(training) // ONE_IN :]
    vocab = blank(rows["language"]).vocab
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for split, some in (("train", training), ("dev", valid)):
            DocBin(docs=(example(vocab, row) for row in some), store_user_data=True).to_disk(folder / f"{split}.spacy")
        init_config(lang=rows["language"], pipeline=[component], optimize="efficiency", gpu=False).to_disk(
            folder / "config.cfg"
        )
        paths = {"paths.train": str(folder / "train.spacy"), "paths.dev": str(folder / "dev.spacy")}
        train(folder / "config.cfg", folder / "model", overrides=paths)
        return spacy.load(folder / "model" / "model-best")


PEERS = {"scikit-learn": linear_svc, "CRF": crf, "spaCy NER": spacy_ner, "spaCy textcat": spacy_textcat}


def main(arguments: Iterable[str]) -> None:
    peer, source, target = arguments
    rows = json.loads(Path(source).read_text(encoding="utf-8"))
    Path(target).write_text(json.dumps(PEERS[peer](rows), ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
