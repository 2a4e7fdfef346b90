from pathlib import Path

import pytest

from manyheads import corpora
from manyheads.corpora import word_tables
from manyheads.run import Corpus, read_recipe
from manyheads.run.corpus import sha256_of


def test_a_table_is_read_by_group_without_its_header_and_comments():
    games = word_tables.read_table("nouns", "game")
    assert games[0] == ["football", "足球", "der Fußball", "it", "kicked"]
    assert len(word_tables.read_table("names")) == 20
    assert not any(row[0].startswith("#") for row in word_tables.read_table("adjectives"))


def test_a_row_with_a_cell_too_few_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables/odd.tsv").write_text("# a comment\nkey\tvalue\none\t1\ntwo\n")
    monkeypatch.setattr(word_tables, "__file__", str(tmp_path / "word_tables.py"))
    with pytest.raises(ValueError, match=r"odd\.tsv: \['two'\] has 1 cells instead of 2"):
        word_tables.read_table("odd")


def test_the_cache_key_of_a_builtin_corpus_depends_on_the_tables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('[data]\nbuiltin = "en-de"\n[task]\nkind = "seq2seq"\n')
    hashed: list[Path] = []

    def recorded(path: Path) -> str:
        hashed.append(path)
        return sha256_of(path)

    monkeypatch.setattr("manyheads.run.corpus.sha256_of", recorded)
    Corpus.of(read_recipe(recipe)).key({})
    tables = sorted((Path(corpora.__file__).parent / "tables").glob("*.tsv"))
    assert tables and set(tables) <= set(hashed)
