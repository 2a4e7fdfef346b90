"""What a table is given for: tags, labels, texts alone or pairs of them, told by its columns."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from manyheads.data import CleanSettings
from manyheads.errors import DataError
from manyheads.init.columns import Column, columns_in, pair_of
from manyheads.init.data_files import pick_columns
from manyheads.init.request import Request, TaskGuess
from manyheads.text.files import format_suffix
from manyheads.text.readers import columns_of
from manyheads.text.suggestions import shortened

_ENOUGH_ROWS = 10  # of a table without names, to call a column one of texts
_LONG = 40.0  # characters, on average
_MUCH_LONGER = 3  # times


def recognize_table(path: Path, request: Request) -> TaskGuess:
    """What the user wants of it, or else the first of tags, labels, long texts and pairs that it holds."""
    header = columns_of(path)
    if not request.kind and not request.columns and pick_columns(header, request.direction):
        return TaskGuess("seq2seq", f"it has the columns {_listed(*(pick_columns(header, request.direction) or ()))}")
    if request.kind == "seq2seq":
        return (
            TaskGuess(request.kind, request.reason, request.columns)
            if request.columns or any(request.direction)
            else _pair(path, columns_in(path))
        )
    columns = columns_in(path)
    _refuse_unknown(path, columns, request)
    for kind, find in _FINDERS.items():
        if request.kind in ("", kind):
            found = find(path, columns, request)
            if found:
                return found
    if request.kind == "masked":
        return replace(_need_text(path, columns, request), kind="masked")
    return _pair(path, columns)


def _refuse_unknown(path: Path, columns: Sequence[Column], request: Request) -> None:
    names = [column.name for column in columns]
    for field_name, name in request.columns.items():
        if name not in names and not (name.isdecimal() and 1 <= int(name) <= len(names)):
            there = shortened(", ".join(names))
            raise DataError(f"{path}: there is no column {name} for --{field_name}-column. There is: {there}.")


def _find_tags(path: Path, columns: Sequence[Column], request: Request) -> TaskGuess | None:
    told = request.columns.get("tags")
    tags = _named(columns, told) if told else next((column for column in columns if column.are_tags), None)
    if tags is None or not tags.are_tags:
        _refuse_tag_numbers(path, columns)
        if request.kind != "tag":
            return None
        there = shortened(", ".join(column.name for column in columns))
        raise DataError(
            f"{path}: no column holds tags such as B-PER, I-PER and O (there is: {there}). Name it with --tags-column."
        )
    words = _named(columns, request.columns["text"]) if "text" in request.columns else None
    words = words or next((other for other in columns if other is not tags and other.has_as_many_words(tags)), None)
    if words is None:
        raise DataError(
            f"{path}: column {tags.name} holds tags, but no other has as many words. Give every word its tag, with one "
            "space between, or name the column of words with --text-column."
        )
    label = _named(columns, request.columns["label"]) if "label" in request.columns else None
    label = label or next((other for other in columns if other.is_called_label and other.repeats), None)
    chosen = {"text": words.name, "tags": tags.name} | ({"label": label.name} if label else {})
    intents = f" and {label.name} an intent for each text" if label else ""
    reason = f"column {tags.name} holds tags for the words of {words.name}{intents}"
    return TaskGuess("tag", reason, chosen, {"intents": label is not None})


def _refuse_tag_numbers(path: Path, columns: Sequence[Column]) -> None:
    lists = [column for column in columns if column.are_lists]
    for numbers in (column for column in lists if column.is_numbers):
        for words in lists:
            if words is not numbers and not words.is_numbers and words.has_as_many_words(numbers):
                raise DataError(
                    f"{path}: column {numbers.name} numbers the tags for the words of {words.name}. Write them out, "
                    "as B-PER, I-PER and O."
                )


def _find_labels(path: Path, columns: Sequence[Column], request: Request) -> TaskGuess | None:
    label = _label_column(path, columns, request)
    if label is None:
        return None
    text = _text_column(path, [column for column in columns if column is not label], request)
    if text is None:
        if request.kind != "classify":
            return None
        raise DataError(f"{path}: no column holds text beside the labels of {label.name}. Name it with --text-column.")
    settings: dict[str, object] = {}
    told = f"column {label.name} has {label.summary} for the texts of {text.name}"
    if label.separator:
        settings = {"multi_label": True, "separator": label.separator}
        told = f"column {label.name} has lists of labels for the texts of {text.name}"
    return TaskGuess("classify", told, {"text": text.name, "label": label.name}, settings)


def _label_column(path: Path, columns: Sequence[Column], request: Request) -> Column | None:
    if "label" in request.columns:
        label = _named(columns, request.columns["label"])
        _refuse_no_labels(path, label)
        return label
    text = request.columns.get("text")
    others = [column for column in columns if column.name != text]
    named = [column for column in others if column.is_called_label]
    if not request.kind and pair_of(columns) and not any(column.is_surely_label for column in named):
        return None
    if named and not any(column.repeats for column in others):
        _refuse_no_labels(path, named[0])
    chosen = [column for column in named if column.repeats] or [column for column in others if column.repeats]
    if len(chosen) == 1:
        return chosen[0]
    if chosen and not named and (request.kind or any(column.are_texts for column in others)):
        raise DataError(
            f"{path}: {len(chosen)} columns may be labels ({'; '.join(column.short_summary for column in chosen)}). "
            "Choose with --label-column."
        )
    if chosen:
        return chosen[0]
    if request.kind == "classify":
        raise DataError(
            f"{path}: no column looks like labels ({shortened('; '.join(column.short_summary for column in columns))}). "
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


def _text_column(path: Path, columns: Sequence[Column], request: Request) -> Column | None:
    if "text" in request.columns:
        return _named(columns, request.columns["text"])
    texts = [column for column in columns if column.are_texts]
    texts = texts or [column for column in columns if not column.is_numbers and not column.is_metadata]
    stems = Counter(column.normalized_name.rstrip("_0123456789") for column in texts if not column.name.isdecimal())
    if any(count > 1 for count in stems.values()) or {"premise", "hypothesis"} <= {*stems}:
        told = _listed(*(column.name for column in texts))
        raise DataError(f"{path}: there are several texts in a row ({told}). Choose one with --text-column.")
    named = [column for column in texts if column.is_called_text] or texts
    return max(named, key=lambda column: column.mean_length, default=None)


def _find_documents(path: Path, columns: Sequence[Column], request: Request) -> TaskGuess | None:
    if request.kind == "language" or "text" in request.columns:
        return _need_text(path, columns, request)
    if pair_of(columns):
        return None
    texts = sorted((column for column in columns if column.are_texts), key=lambda column: -column.mean_length)
    if not texts or len(texts[0].values) < _ENOUGH_ROWS:
        return None
    others = max((column.mean_length for column in columns if column is not texts[0]), default=0.0)
    is_alone = all(column.is_numbers or column.is_metadata for column in columns if column is not texts[0])
    is_long = texts[0].mean_length >= _LONG and texts[0].mean_length >= _MUCH_LONGER * others
    if not (is_alone and (is_long or texts[0].is_called_text)) and not (len(columns) > 2 and is_long):
        return None
    return TaskGuess("language", f"column {texts[0].name} holds long texts", {"text": texts[0].name})


def _need_text(path: Path, columns: Sequence[Column], request: Request) -> TaskGuess:
    text = _text_column(path, columns, request)
    if text is None:
        there = shortened("; ".join(column.short_summary for column in columns))
        raise DataError(f"{path}: no column holds text ({there}). Name it with --text-column.")
    reason = request.reason if request.task else f"column {text.name} holds texts"
    return TaskGuess("language", reason, {"text": text.name})


def _pair(path: Path, columns: Sequence[Column]) -> TaskGuess:
    """Texts and what is to be made of them; where names do not tell which, `find_split_files` asks."""
    pair = pair_of(columns)
    if pair:
        return TaskGuess(
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
    if len(columns) == 2 and format_suffix(path) == ".tsv":
        return TaskGuess("seq2seq", "it has two columns of text")
    raise DataError(
        f"{path}: it is not clear which columns to learn from (there is: "
        f"{shortened(', '.join(column.name for column in columns))}). Say so with --text-column and --label-column or "
        "--tags-column, with --source-column and --target-column, or with --text-column alone."
    )


_FINDERS: dict[str, Callable[[Path, Sequence[Column], Request], TaskGuess | None]] = {
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
