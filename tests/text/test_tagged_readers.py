import gzip
import io
import json
import os
from itertools import pairwise
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyheads.errors import DataError
from manyheads.text.reading.readers import Row
from manyheads.text.reading.tag_schemes import Scheme, detect_scheme, spans_to_tags, tags_to_spans
from manyheads.text.reading.tagged_readers import read_tagged

from text.makers import Write, refuses

DATA = Path(os.environ.get("MANYHEADS_DATA", Path(__file__).parents[3] / "shared" / "data"))


class TestColumns:
    def test_conll_2003(self, write: Write) -> None:
        path = write(
            "eng.train",
            "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\nrejects VBZ I-VP O\nGerman JJ I-NP I-MISC\n\n\n"
            "-DOCSTART- -X- O O\nA NNP I-NP I-PER\nB NNP I-NP B-PER\nC NNP I-NP I-PER",
        )
        assert list(read_tagged(path)) == [("EU rejects German", "B-ORG O B-MISC"), ("A B C", "B-PER B-PER I-PER")]
        assert next(read_tagged(path, tag_column="3")) == ("EU rejects German", "B-NP B-VP B-NP")
        assert next(read_tagged([str(path)], word_column="2", tag_column="4"))[0] == "NNP VBZ JJ"

    @pytest.mark.parametrize("separator", [" ", "\t", "  "])
    @pytest.mark.parametrize("end", ["\n", "\r\n"])
    def test_characters_in_bmes(self, write: Write, separator: str, end: str) -> None:
        lines = ["高 B-NAME", "勇 E-NAME", "： O", "", "汉 B-RACE", "族 E-RACE", "人 S-X", " "]
        path = write("a.char.bmes", "".join(line.replace(" ", separator) + end for line in lines))
        assert list(read_tagged(path)) == [("高 勇 ：", "B-NAME I-NAME O"), ("汉 族 人", "B-RACE I-RACE B-X")]

    def test_tags_in_the_first_column(self, write: Write) -> None:
        path = write("a.bio", "O\ta\nB-Rating\tfive\nI-Rating\tstar\n\nO\tx\n")
        assert list(read_tagged(path)) == [("a five star", "O B-Rating I-Rating"), ("x", "O")]

    def test_annotation_error_does_not_change_the_tag_column(self, write: Write) -> None:
        path = write("a", "EU NNP I-NP I-ORG\nsays VBZ I-VP 0\nso RB I-VP O\n")
        with refuses(
            '*/a, lines 1 to 3: tag 2 of 3 is "0"; a tag must be O or one of B-…, I-…. Choose the column that holds '
            "the tags."
        ):
            list(read_tagged(path))

    def test_comments_and_words_that_start_with_hash(self, write: Write) -> None:
        path = write("a.conll", "# id 7 domain=en\n# text\n#tag _ _ O\n# _ _ O\n\n# id 8 domain=en\nb _ _ B-X\n")
        assert list(read_tagged(path)) == [("#tag #", "O O"), ("b", "B-X")]
        assert list(read_tagged(write("b.tsv", "#\tO\na\tO\n\n# b\nc\tO\n"))) == [("# a", "O O"), ("c", "O")]

    def test_conll_u_plus(self, write: Write) -> None:
        path = write(
            "a.conllup",
            "# global.columns = ID FORM UPOS NE\n# text = du Pé\n1-2\tdu\t_\t_\n1\tde\tADP\tO\n2\tle\tDET\tO\n"
            "2.1\tx\tX\t_\n3\tPé\tPROPN\tB-PER\n",
        )
        assert list(read_tagged(path)) == [("de le Pé", "O O B-PER")]
        assert list(read_tagged(path, word_column="UPOS", tag_column="NE")) == [("ADP DET PROPN", "O O B-PER")]
        with refuses('*/a.conllup: there is no column "NER". Available: ID, FORM, UPOS, NE. Did you mean NE?'):
            list(read_tagged(path, tag_column="NER"))

    def test_unusual_white_space(self, write: Write) -> None:
        path = write("a", "3\xa0000 O\n\u3000 O\n  O\nx\u2028 B-a\xa0b\n")
        assert list(read_tagged(path)) == [("3_000 _ _ x_", "O O O B-a_b")]
        assert list(read_tagged(write("b", "New York\tB-LOC\n\tO\n"))) == [("New_York _", "B-LOC O")]

    def test_missing_column(self, write: Write) -> None:
        for content, columns in (("a O\nb\n", 1), ("a O\nb c O\n", 3)):
            with refuses(
                f"*/a, line 2: the number of columns is {columns}, but should be 2. Check for a missing or an extra "
                "separator."
            ):
                list(read_tagged(write("a", content)))
        with refuses('*/a: "one" has one column. Write one word and its tag per line, separated *'):
            list(read_tagged(write("a", "one\ntwo\n")))
        with refuses(
            '*/a: there is no column "3". Available: 1, 2. Choose one with text_column and tags_column.',
        ):
            list(read_tagged(write("a", "a O\n"), tag_column="3"))

    def test_files_without_sentences(self, write: Write) -> None:
        with refuses("*/a is empty. Give a file with text."):
            list(read_tagged(write("a", "")))
        with refuses("*/a has only blank lines. Give a file with text."):
            list(read_tagged(write("a", "\n \n")))
        with refuses("*/a has no sentence. Give a file with tagged text."):
            list(read_tagged(write("a", "-DOCSTART- O\n\n")))
        with refuses("*/b: there is no such file."):
            read_tagged(write("a", "").parent / "b")

    def test_invalid_tags_raise_or_are_reported(self, write: Write) -> None:
        path = write("a.gz", gzip.compress(b"a B-X\nb I-X\n\n# c\nc O\nd I-X\ne I-Y\n"))
        fault = (
            "*/a.gz, lines 5 to 7: tag 2 of 3, I-X after O, is not valid in IOB2. Correct the tag, or set the scheme."
        )
        with refuses(fault):
            list(read_tagged(path, scheme="IOB2"))
        errors: list[DataError] = []
        rows = list(read_tagged(path, scheme="IOB2", on_bad=errors.append))
        assert rows == [("a b", "B-X I-X"), ("c d e", "O B-X B-Y")]
        assert len(errors) == 2

    def test_all_strings_that_are_no_tags_are_listed(self, write: Write) -> None:
        path = write("a", "a B-X\nb I-X\n\n" + "c NN\n\nd O\n\n" * 7)
        with pytest.raises(DataError) as caught:
            list(read_tagged(path, scheme="IOB2"))
        assert str(caught.value).count('tag 1 of 1 is "NN"') == 5
        assert "lines 4 to 4: " in str(caught.value)

    def test_faults_are_passed_apart_from_bad_bytes(self, write: Write) -> None:
        bad: list[DataError] = []
        faults: list[DataError] = []
        path = write("a", b"\xff I-X\nb B-X\n")
        assert list(read_tagged(path, scheme="IOB2", on_bad=bad.append, on_fault=faults.append)) == [
            ("\ufffd b", "B-X B-X")
        ]
        assert (len(bad), len(faults)) == (1, 1)

    def test_invalid_bytes_are_reported_once(self, write: Write) -> None:
        errors: list[DataError] = []
        assert list(read_tagged(write("a", b"\xff O\nb O\n"), on_bad=errors.append)) == [("\ufffd b", "O O")]
        assert [str(fault).partition(":")[0].rpartition("/")[2] for fault in errors] == ["a, line 1"]
        with pytest.raises(DataError, match="line 1: byte 1 of the line"):
            list(read_tagged(write("a", b"\xff O\nb O\n")))

    @settings(deadline=None)
    @given(
        st.lists(
            st.lists(
                st.tuples(st.sampled_from(["a", "#", "é", "二"]), st.sampled_from(["O", "B-x", "B-y", "I"])), min_size=1
            ),
            min_size=1,
        ),
        st.sampled_from(get_args(Scheme)),
        st.sampled_from([" ", "\t"]),
    )
    def test_every_scheme_gives_the_same_rows(
        self,
        tmp_path_factory: pytest.TempPathFactory,
        sentences: list[list[tuple[str, str]]],
        scheme: Scheme,
        separator: str,
    ) -> None:
        path = tmp_path_factory.getbasetemp() / "written.conll"
        spans = [tags_to_spans([tag for _, tag in sentence], "IOB2", on_bad=lambda _: None) for sentence in sentences]
        expected: list[Row] = []
        text = ""
        for sentence, found in zip(sentences, spans, strict=True):
            words = [word for word, _ in sentence]
            tags = spans_to_tags(found, len(words), scheme)
            text += "".join(f"{word}{separator}{tag}\n" for word, tag in zip(words, tags, strict=True)) + "\n"
            expected.append((" ".join(words), " ".join(spans_to_tags(found, len(words), "IOB2"))))
        path.write_text(text, encoding="utf-8")
        assert list(read_tagged(path)) == expected


class TestSentencePerLine:
    def test_folder_is_read_as_its_files(self, write: Write, tmp_path: Path) -> None:
        files = [write("seq.in", "add  this song \nto\tit\n"), write("seq.out", "O O B-item\nO O \n")]
        assert (
            list(read_tagged(files))
            == list(read_tagged(tmp_path))
            == [("add this song", "O O B-item"), ("to it", "O O")]
        )
        files.append(write("label", "Add\nAdd#To\n"))
        rows = [("add this song", "O O B-item", "Add"), ("to it", "O O", "Add#To")]
        assert list(read_tagged(files, joint=True)) == list(read_tagged(tmp_path, joint=True)) == rows

    def test_other_white_space_separates_words_if_the_count_matches(self, write: Write) -> None:
        files = [write("a", "x\xa0y z\nx\xa0y z\n"), write("b", "O O\nO O O\n")]
        assert list(read_tagged(files)) == [("x_y z", "O O"), ("x y z", "O O O")]

    def test_different_numbers_of_words_and_tags(self, write: Write) -> None:
        with refuses("*/a, line 2: there are 2 words, but 3 tags. Write one tag per word, separated by single spaces."):
            list(read_tagged([write("a", "x\nx y\n"), write("b", "O\nO O O\n")]))
        with refuses("*/a, line 1: tag 2 of 2, I-Y after B-X, is not valid in IOB2. *"):
            list(read_tagged([write("a", "x y\na b\n"), write("b", "B-X I-Y\nB-X I-X\n")]))

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("a.tsv", "i d\tO S-x\ng\tO\n"),
            ("a.tsv", "tags\ttext\nO S-x\ti d\nO\tg\n"),
            ("a.csv", "text,tags\ni d,O S-x\ng,O\n"),
            ("a.jsonl", '{"text": "i d", "tags": "O S-x"}\n{"text": ["g"], "tags": ["O"]}\n'),
        ],
    )
    def test_tables(self, write: Write, name: str, content: str) -> None:
        assert list(read_tagged(write(name, content))) == [("i d", "O B-x"), ("g", "O")]

    def test_lists(self, write: Write) -> None:
        record = {"tokens": ["New York", "", "c"], "ner": ["B-L", "O", "O"], "intent": "x"}
        path = write("a.jsonl", json.dumps(record))
        columns = {"word_column": "tokens", "tag_column": "ner"}
        assert list(read_tagged(path, **columns)) == [("New_York _ c", "B-L O O")]
        joint = read_tagged(path, **columns, label_column="intent", joint=True)
        assert list(joint) == [("New_York _ c", "B-L O O", "x")]
        path = write("a.jsonl", '{"text": ["a"], "tags": [3]}')
        with refuses('*/a.jsonl, line 1: "tags" is [3], which is not supported. Use a string.'):
            list(read_tagged(path))

    def test_parquet(self, write: Write) -> None:
        pyarrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        stream = io.BytesIO()
        parquet.write_table(pyarrow.table({"text": [["a", "b"], ["c"]], "tags": [["O", "B-x"], ["I-x"]]}), stream)
        errors: list[DataError] = []
        rows = list(read_tagged(write("a.parquet", stream.getvalue()), scheme="IOB2", on_bad=errors.append))
        assert rows == [("a b", "O B-x"), ("c", "B-x")]
        assert str(errors[0]).partition(":")[0].endswith("a.parquet, row 2")

    def test_wrong_number_of_files(self, write: Write) -> None:
        path = write("a", "a O\n")
        with refuses("*/a, */a: tagged text is read from one file or from three parallel files (words, tags, labels)."):
            read_tagged([path, path], joint=True)
        with refuses("no file given: tagged text is read from one file or from two parallel files (words, tags)."):
            read_tagged([])
        with refuses("*/a: CoNLL columns have no sentence labels. Give three parallel files, or a table."):
            list(read_tagged(path, joint=True))


class TestPublicDatasets:
    """Compares with counts made here, tag by tag, without the code under test."""

    @pytest.mark.parametrize(
        ("name", "scheme", "faults"),
        [
            ("conll2003/eng.train", "IOB1", 0),
            ("conll2003/eng.testa", "IOB1", 0),
            ("conll2003/eng.testb", "IOB1", 0),
            ("resume-ner/train.char.bmes", "BMES", 4),  # two spans are torn apart by the end of a sentence
            ("resume-ner/dev.char.bmes", "BMES", 0),
        ],
    )
    def test_columns(self, name: str, scheme: Scheme, faults: int) -> None:
        path = found(name)
        sentences, words, spans, last = 0, 0, 0, ""
        tags_seen = []
        for line in [*path.read_text(encoding="utf-8").split("\n"), ""]:
            if not line:
                sentences += last not in ("", "-DOCSTART-")
                last = ""
            elif line.startswith("-DOCSTART-"):
                last = "-DOCSTART-"
            else:
                tag = line.rpartition(" ")[2]
                words += 1
                spans += tag[0] in "BS" or (tag[0] in "IM" and last[1:] != tag[1:])
                last = tag
                tags_seen.append(tag)
        errors: list[DataError] = []
        rows = list(read_tagged(path, on_bad=errors.append))
        assert detect_scheme([tags_seen]) == scheme
        assert counts(rows) == (sentences, words, spans)
        assert len(errors) == faults

    @pytest.mark.parametrize(
        "name", [f"{name}/{part}" for name in ("snips", "atis") for part in ("train", "valid", "test")]
    )
    def test_parallel(self, name: str) -> None:
        folder = found(name)
        tags = [line.split() for line in (folder / "seq.out").read_text(encoding="utf-8").splitlines()]
        assert not any(tag[0] == "I" and tag[1:] != last[1:] for line in tags for last, tag in pairwise(["O", *line]))
        rows = list(read_tagged(folder, joint=True))
        spans = sum(tag.startswith("B-") for line in tags for tag in line)
        assert counts(rows) == (len(tags), sum(map(len, tags)), spans)
        assert [row[2] for row in rows] == (folder / "label").read_text(encoding="utf-8").splitlines()


def found(name: str) -> Path:
    if not (DATA / name).exists():
        pytest.skip(f"{name} is not in {DATA}; set MANYHEADS_DATA to the folder of data sets.")
    return DATA / name


def counts(rows: list[Row]) -> tuple[int, int, int]:
    spans = sum(tag.startswith("B-") for row in rows for tag in row[1].split(" "))
    return len(rows), sum(len(row[0].split(" ")) for row in rows), spans
