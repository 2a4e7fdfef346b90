"""What a table is given for: tags, labels, texts alone or pairs of them, told by its columns."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from manyheads.data import CleanSettings
from manyheads.errors import DataError
from manyheads.recipe.columns import Column, columns_in, pair_of
from manyheads.recipe.finding import pick_columns
from manyheads.recipe.wishes import Finding, Wishes
from manyheads.text.missing import shortened
from manyheads.text.readers import columns_of
from manyheads.text.unpacking import format_ending

_ENOUGH_ROWS = 10  # of a table without names, to call a column one of texts
_LONG = 40.0  # characters, on average
_MUCH_LONGER = 3  # times


def recognise_table(path: Path, wishes: Wishes) -> Finding:
    """What the user wants of it, or else the first of tags, labels, long texts and pairs that it holds."""
    header = columns_of(path)
    if not wishes.kind and not wishes.columns and pick_columns(header, wishes.direction):
        return Finding("seq2seq", f"it has the columns {_listed(*(pick_columns(header, wishes.direction) or ()))}")
    if wishes.kind == "seq2seq":
        return (
            Finding(wishes.kind, wishes.why, wishes.columns)
            if wishes.columns or any(wishes.direction)
            else _pair(path, columns_in(path))
        )
    columns = columns_in(path)
    _refuse_unknown(path, columns, wishes)
    for kind, find in _FINDERS.items():
        if wishes.kind in ("", kind):
            found = find(path, columns, wishes)
            if found:
                return found
    if wishes.kind == "masked":
        return replace(_need_text(path, columns, wishes), kind="masked")
    return _pair(path, columns)


def _refuse_unknown(path: Path, columns: Sequence[Column], wishes: Wishes) -> None:
    names = [column.name for column in columns]
    for field_name, name in wishes.columns.items():
        if name not in names and not (name.isdecimal() and 1 <= int(name) <= len(names)):
            there = shortened(", ".join(names))
            raise DataError(f"{path}: there is no column {name} for --{field_name}-column. There is: {there}.")


def _find_tags(path: Path, columns: Sequence[Column], wishes: Wishes) -> Finding | None:
    told = wishes.columns.get("tags")
    tags = _named(columns, told) if told else next((column for column in columns if column.are_tags), None)
    if tags is None or not tags.are_tags:
        _refuse_tag_numbers(path, columns)
        if wishes.kind != "tag":
            return None
        there = shortened(", ".join(column.name for column in columns))
        raise DataError(
            f"{path}: no column holds tags such as B-PER, I-PER and O (there is: {there}). Name it with --tags-column."
        )
    units = _named(columns, wishes.columns["text"]) if "text" in wishes.columns else None
    units = units or next((other for other in columns if other is not tags and other.has_as_many_words(tags)), None)
    if units is None:
        raise DataError(
            f"{path}: column {tags.name} holds tags, but no other has as many words. Give every word its tag, with one "
            "space between, or name the column of words with --text-column."
        )
    label = _named(columns, wishes.columns["label"]) if "label" in wishes.columns else None
    label = label or next((other for other in columns if other.is_called_label and other.repeats), None)
    chosen = {"text": units.name, "tags": tags.name} | ({"label": label.name} if label else {})
    intents = f" and {label.name} an intent for each text" if label else ""
    why = f"column {tags.name} holds tags for the words of {units.name}{intents}"
    return Finding("tag", why, chosen, {"intents": label is not None})


def _refuse_tag_numbers(path: Path, columns: Sequence[Column]) -> None:
    lists = [column for column in columns if column.are_lists]
    for numbers in (column for column in lists if column.is_numbers):
        for units in lists:
            if units is not numbers and not units.is_numbers and units.has_as_many_words(numbers):
                raise DataError(
                    f"{path}: column {numbers.name} numbers the tags for the words of {units.name}. Write them out, "
                    "as B-PER, I-PER and O."
                )


def _find_labels(path: Path, columns: Sequence[Column], wishes: Wishes) -> Finding | None:
    label = _label_column(path, columns, wishes)
    if label is None:
        return None
    text = _text_column(path, [column for column in columns if column is not label], wishes)
    if text is None:
        if wishes.kind != "classify":
            return None
        raise DataError(f"{path}: no column holds text beside the labels of {label.name}. Name it with --text-column.")
    settings: dict[str, object] = {}
    told = f"column {label.name} has {label.told} for the texts of {text.name}"
    if label.separator:
        settings = {"multi_label": True, "separator": label.separator}
        told = f"column {label.name} has lists of labels for the texts of {text.name}"
    return Finding("classify", told, {"text": text.name, "label": label.name}, settings)


def _label_column(path: Path, columns: Sequence[Column], wishes: Wishes) -> Column | None:
    if "label" in wishes.columns:
        label = _named(columns, wishes.columns["label"])
        _refuse_no_labels(path, label)
        return label
    text = wishes.columns.get("text")
    others = [column for column in columns if column.name != text]
    named = [column for column in others if column.is_called_label]
    if not wishes.kind and pair_of(columns) and not any(column.is_surely_label for column in named):
        return None
    if named and not any(column.repeats for column in others):
        _refuse_no_labels(path, named[0])
    chosen = [column for column in named if column.repeats] or [column for column in others if column.repeats]
    if len(chosen) == 1:
        return chosen[0]
    if chosen and not named and (wishes.kind or any(column.are_texts for column in others)):
        raise DataError(
            f"{path}: {len(chosen)} columns may be labels ({'; '.join(column.described for column in chosen)}). "
            "Choose with --label-column."
        )
    if chosen:
        return chosen[0]
    if wishes.kind == "classify":
        raise DataError(
            f"{path}: no column looks like labels ({shortened('; '.join(column.described for column in columns))}). "
            "Name it with --label-column."
        )
    return None


def _refuse_no_labels(path: Path, column: Column) -> None:
    n_values, n_rows = len(column.counts), column.counts.total()
    if n_values < 2:
        only = f"only “{next(iter(column.counts))}”" if n_values else "no value"
        raise DataError(f"{path}: column {column.name} has {only}: there is nothing to tell apart. Give two labels.")
    if n_values == n_rows and not column.separator:
        raise DataError(
            f"{path}: column {column.name} has {n_values:,} different values in {n_rows:,} rows: no labels, which come "
            "again and again. Name another with --label-column, or say what it is with --task."
        )


def _text_column(path: Path, columns: Sequence[Column], wishes: Wishes) -> Column | None:
    if "text" in wishes.columns:
        return _named(columns, wishes.columns["text"])
    texts = [column for column in columns if column.are_texts]
    texts = texts or [column for column in columns if not column.is_numbers and not column.is_apart]
    stems = Counter(column.word.rstrip("_0123456789") for column in texts if not column.name.isdecimal())
    if any(count > 1 for count in stems.values()) or {"premise", "hypothesis"} <= {*stems}:
        told = _listed(*(column.name for column in texts))
        raise DataError(f"{path}: there are several texts in a row ({told}). Choose one with --text-column.")
    named = [column for column in texts if column.is_called_text] or texts
    return max(named, key=lambda column: column.mean_length, default=None)


def _find_documents(path: Path, columns: Sequence[Column], wishes: Wishes) -> Finding | None:
    if wishes.kind == "language" or "text" in wishes.columns:
        return _need_text(path, columns, wishes)
    if pair_of(columns):
        return None
    texts = sorted((column for column in columns if column.are_texts), key=lambda column: -column.mean_length)
    if not texts or len(texts[0].values) < _ENOUGH_ROWS:
        return None
    others = max((column.mean_length for column in columns if column is not texts[0]), default=0.0)
    is_alone = all(column.is_numbers or column.is_apart for column in columns if column is not texts[0])
    is_long = texts[0].mean_length >= _LONG and texts[0].mean_length >= _MUCH_LONGER * others
    if not (is_alone and (is_long or texts[0].is_called_text)) and not (len(columns) > 2 and is_long):
        return None
    return Finding("language", f"column {texts[0].name} holds long texts", {"text": texts[0].name})


def _need_text(path: Path, columns: Sequence[Column], wishes: Wishes) -> Finding:
    text = _text_column(path, columns, wishes)
    if text is None:
        there = shortened("; ".join(column.described for column in columns))
        raise DataError(f"{path}: no column holds text ({there}). Name it with --text-column.")
    why = wishes.why if wishes.task else f"column {text.name} holds texts"
    return Finding("language", why, {"text": text.name})


def _pair(path: Path, columns: Sequence[Column]) -> Finding:
    """Texts and what is to be made of them; where names do not tell which, `find_sets` asks."""
    pair = pair_of(columns)
    if pair:
        return Finding(
            "seq2seq",
            f"it has the columns {_listed(pair.source, pair.target)}",
            {"source": pair.source, "target": pair.target},
            {"purpose": pair.purpose},
            # An answer, or a summary, has a length of its own.
            CleanSettings() if pair.purpose == "translation" else CleanSettings(max_ratio=0.0),
        )
    if len(columns) == 1:
        raise DataError(
            f"{path} has one column only. Give source and target, or text and label, in two, or give two parallel "
            "files; a column of texts alone is for --task language."
        )
    if len(columns) == 2 and format_ending(path) == ".tsv":
        return Finding("seq2seq", "it has two columns of text")
    raise DataError(
        f"{path}: it is not clear which columns to learn from (there is: "
        f"{shortened(', '.join(column.name for column in columns))}). Say so with --text-column and --label-column or "
        "--tags-column, with --source-column and --target-column, or with --text-column alone."
    )


_FINDERS: dict[str, Callable[[Path, Sequence[Column], Wishes], Finding | None]] = {
    "tag": _find_tags,
    "classify": _find_labels,
    "language": _find_documents,
}


def _named(columns: Sequence[Column], name: str) -> Column:
    """The column of this name or number; it is known to be there."""
    found = next((column for column in columns if column.name == name), None)
    return found or columns[int(name) - 1]


def _listed(*names: str) -> str:
    return " and ".join(names) if len(names) == 2 else ", ".join(names)
