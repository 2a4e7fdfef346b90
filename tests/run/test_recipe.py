"""`Recipe`: reading, presets, overrides, and faults."""

import dataclasses
import typing
from pathlib import Path

import pytest

from manyheads.errors import RecipeError
from manyheads.run import Recipe, read_recipe
from manyheads.run.recipe import _RENAMED
from manyheads.settings import read_toml, to_table, to_toml
from manyheads.tasks import TASKS


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_preset_is_expanded_and_can_be_overridden(tmp_path: Path) -> None:
    recipe = read_recipe(
        write(tmp_path / "r.toml", '[data]\nbuiltin = "de-en"\n[model]\npreset = "tiny"\nn_heads = 8\n'),
        ["train.steps=7", "model.norm_placement=pre"],
    )
    assert (recipe.model.width, recipe.model.n_heads, recipe.model.norm_placement) == (128, 8, "pre")
    assert recipe.train.steps == 7
    assert (recipe.task.source_language, recipe.task.target_language) == ("de", "en")
    assert recipe.model.vocab_size == recipe.tokenizer.vocab_size


def test_file_names_are_relative_to_the_recipe(tmp_path: Path) -> None:
    recipe = read_recipe(write(tmp_path / "r.toml", '[data]\ntrain = ["a.en", "/b.zh"]\n'))
    assert recipe.data.train == (str(tmp_path / "a.en"), "/b.zh")


def test_resolved_recipe_round_trip(tmp_path: Path) -> None:
    recipe = Recipe.from_table({"data": {"builtin": "en-zh"}, "model": {"preset": "small"}})
    path = write(tmp_path / "r.toml", to_toml(to_table(recipe)))
    assert Recipe.from_table(read_toml(path)) == recipe


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"data.train is missing. Name your files"),
        ('[data]\nbuiltin = "en-fr"', r'data.builtin = "en-fr" should be two of en, zh, de'),
        ('[data]\nbuiltin = "en-en-zh"', r"should be two of en, zh, de"),
        ('[data]\nbuiltin = "en-zh"\ntrain = ["a"]', "data.builtin and data.train are both given. Choose one"),
        ('[data]\nbuiltin = "en-zh"\nbuiltin_rows = 3', "must be at least 1,000 and at most 10,000,000"),
        ('[data]\ntrain = ["a", "b", "c"]', "data.train names 3 files. Give two parallel ones"),
        ('[data]\nbuiltin = "en-zh"\n[model]\npreset = "huge"', 'model.preset = "huge" is not a preset'),
        ('[data]\nbuiltin = "en-zh"\n[model]\nn_heads = 7', r"model.n_heads = 7 does not divide model.width = 512"),
        ('[data]\nbuiltin = "en-zh"\n[trian]\nsteps = 7', r"trian is not a setting. Did you mean train\?"),
        ('[data]\nbuiltin = "en-zh"\n[train]\nstep = 7', r"train.step is not a setting. Did you mean steps\?"),
        ('[data]\nbuiltin = "en-zh"\n[train]\nsteps = "many"', r'train.steps = "many" should be a whole number'),
        ("[data", "not valid TOML"),
        ("data = 5", r"data = 5 should be a table: write \[data\]"),
        ('model = 5\n[data]\nbuiltin = "en-zh"', r"model = 5 should be a table"),
        ('tokenizer = 5\n[data]\nbuiltin = "en-zh"', r"tokenizer = 5 should be a table"),
        ("[data]\nbuiltin = 5", "data.builtin = 5 should be text in quotes"),
        ('[data]\nbuiltin = "en-en"', "should be two of en, zh, de"),
        ('[data]\nbuiltin = "en-zh"\n[model]\npreset = ["a"]', r'model.preset = \["a"\] is not a preset'),
        ('[data]\nbuiltin = "en-zh"\ntest = ["a", "b"]', "data.builtin and data.test are both given"),
        ('[data]\nbuiltin = "en-zh"\n[task]\ntarget_language = "de"', 'does not fit task languages "en-de"'),
        (
            '[data]\nbuiltin = "en-zh"\n[model]\nshape = "decoder"',
            'model.shape = "decoder" does not fit task.kind = "seq2seq". Use "encoder-decoder"',
        ),
        ('seed = -1\n[data]\nbuiltin = "en-zh"', "seed = -1 must be at least 0"),
    ],
)
def test_fault_is_reported_with_the_file(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path / "r.toml", text)
    with pytest.raises(RecipeError, match=message) as caught:
        read_recipe(path)
    assert all(fault.startswith(str(path)) for fault in caught.value.faults)


def test_data_folder(tmp_path: Path) -> None:
    path = write(tmp_path / "r.toml", '[data]\nfolder = "texts"\ntrain = ["a.en", "/b.zh"]\nvalid = ["v.tsv"]\n')
    recipe = read_recipe(path)
    assert recipe.data.train == (str(tmp_path / "texts" / "a.en"), "/b.zh")
    assert recipe.data.valid == (str(tmp_path / "texts" / "v.tsv"),)
    assert recipe.data.folder is None
    elsewhere = read_recipe(path, ["data.folder=/elsewhere"])
    assert elsewhere.data.train[0] == "/elsewhere/a.en"


def test_all_faults_are_reported_together(tmp_path: Path) -> None:
    path = write(
        tmp_path / "r.toml", '[data]\nbuiltin = "xx"\n[train]\nsteps = -1\nclip_norm = -1\n[decode]\nbaem = 3\n'
    )
    with pytest.raises(RecipeError) as caught:
        read_recipe(path)
    assert len(caught.value.faults) == 4


def test_missing_recipe(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="there is no such file"):
        read_recipe(tmp_path / "r.toml")


def test_recipe_with_renamed_keys_is_refused_in_one_line(tmp_path: Path) -> None:
    path = write(
        tmp_path / "r.toml",
        '[data]\nbuiltin = "en-zh"\nbuiltin_pairs = 3\n[model]\nnorm_place = "pre"\n[train]\nlook_evry = 1\n',
    )
    with pytest.raises(RecipeError) as caught:
        read_recipe(path)
    assert str(caught.value) == (
        f"{path}: this recipe was written for an older version of manyheads: data.builtin_pairs is now "
        "data.builtin_rows, model.norm_place is now model.norm_placement."
    )


def keys_of(settings: type, section: str = "") -> set[str]:
    keys: set[str] = set()
    for name, hint in typing.get_type_hints(settings).items():
        inner = [kind for kind in (hint, *typing.get_args(hint)) if dataclasses.is_dataclass(kind)]
        keys |= {f"{section}{name}"}.union(*(keys_of(kind, f"{section}{name}.") for kind in inner))  # type: ignore[arg-type]
    return keys


def test_renamed_keys_point_to_existing_settings() -> None:
    keys = keys_of(Recipe).union(*(keys_of(task.settings_type, "task.") for task in TASKS.values()))
    assert "train.steps" in keys
    assert {new.partition(" ")[0] for new in _RENAMED.values()} <= keys
    assert not keys & set(_RENAMED)


BUILTIN = '[data]\nbuiltin = "en-zh"\n'
HOSTILE = {
    "width": (f"{BUILTIN}[model]\nwidth = 1000000000000", "model.width = 1000000000000 must be at least 1 and at most"),
    "layers": (f"{BUILTIN}[model]\nn_encoder_layers = 1000000", "model.n_encoder_layers = 1000000 must be at least 0"),
    "length": (f"{BUILTIN}[model]\nmax_length = 1000000000", "model.max_length = 1000000000 must be at least 1"),
    "heads": (f"{BUILTIN}[model]\nn_heads = 999999999999", "model.n_heads = 999999999999 must be at least 1"),
    "vocabulary": (f"{BUILTIN}[tokenizer]\nvocab_size = 1000000000", "vocab_size = 1000000000 must be at least"),
    "digits": (f"{BUILTIN}[model]\nwidth = 1{'0' * 400}", "model.width is an integer of more than 64 bits"),
    "more digits": (f"seed = {'9' * 5000}\n{BUILTIN}", "an integer of more than 4,300 digits"),
    "nan": (f"{BUILTIN}[model]\ndropout = nan", "model.dropout = nan must be at least 0 and less than 1"),
    "inf": (f"{BUILTIN}[train]\nlearning_rate = inf", "train.learning_rate = inf must be greater than 0 and finite"),
    "boolean": (f"{BUILTIN}[model]\nattention_bias = 1", "model.attention_bias = 1 should be true or false"),
    "integer": (f"{BUILTIN}[model]\nwidth = true", "model.width = true should be a whole number"),
    "nesting": (f"a = {'[' * 10_000}", "nested more than 32 levels deep"),
    "dotted": (f"{'a.' * 10_000}a = 1", "nested more than 32 levels deep"),
    "nul": ('[data]\ntrain = ["a\\u0000b"]', r"cannot be used: embedded null byte"),
    "long name": (f'[data]\ntrain = ["{"a" * 5000}"]', "cannot be used: File name too long"),
    "loop": ('[data]\ntrain = ["loop"]', "cannot be used: Too many levels of symbolic links"),
    "nul in init_from": (f'init_from = "a\\u0000b"\n{BUILTIN}', "init_from = .* cannot be used: embedded null byte"),
    "long text": (f'[data]\nbuiltin = "{"x" * 5000}"\n[task]\nkind = "language"', '= .* … x+" should be two of'),
    "list": (f'{BUILTIN}[task]\nkind = ["x"]', r'task.kind = \["x"\] is not a task'),
    "table of choice": (f"{BUILTIN}[model]\npositions = {{a = 1}}", "model.positions = {a = 1} is not one of"),
    "score form": (f'{BUILTIN}[model]\nscores = ["x"]', "model.scores = .* should be text in quotes"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_value_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    text, message = HOSTILE[name]
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(RecipeError, match=message) as caught:
        read_recipe(write(tmp_path / "r.toml", text))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("value", ["1" + "0" * 400, "9" * 5000, "[" * 10_000, "1000000000000", "nan", "\udcff"])
def test_hostile_override_is_refused(tmp_path: Path, value: str) -> None:
    path = write(tmp_path / "r.toml", BUILTIN)
    with pytest.raises(RecipeError) as caught:
        read_recipe(path, [f"model.width={value}"])
    assert len(str(caught.value)) < 500


def test_endless_file_is_refused() -> None:
    with pytest.raises(RecipeError, match="/dev/zero: the file has more than 8,000,000 bytes"):
        read_recipe(Path("/dev/zero"))
