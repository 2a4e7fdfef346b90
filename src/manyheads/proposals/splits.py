"""Find the train, valid and test files by their names: among files, and beside the training files.

Where there is no valid file, `run.held_out` holds rows out of training to validate on.
"""

from collections.abc import Sequence
from pathlib import Path

from manyheads.tasks.data_files import around_split, split_in_name
from manyheads.text.reading.readers import is_table


def by_split(files: Sequence[Path]) -> tuple[Sequence[Path], dict[str, Sequence[Path]]]:
    """The training files, and the valid and test files, by their names."""
    splits = [split_in_name(path) for path in files]
    if splits.count("") == 1 and all(map(is_table, files)):  # reviews.csv and test.csv
        splits = [split or "train" for split in splits]
    is_one_each = len(files) > 1 and "train" in splits and len({*splits}) == len(files) and all(splits)
    sets: dict[str, Sequence[Path]] = {"valid": (), "test": ()}
    if not is_one_each:
        return files, sets
    sets |= {split: (path,) for split, path in zip(splits, files, strict=True)}
    return sets.pop("train"), sets


def sibling_files(training: Sequence[Path], split: str) -> tuple[Path, ...]:
    """The valid or test files beside the training files, with the same names but for the split.

    Beside train.de: val.de or test_2016.de; beside eng.train: eng.testa; beside train/seq.in: valid/seq.in.
    """
    if not training or not all(split_in_name(path) == "train" for path in training):
        return _sibling_folder_files(training, split)
    candidates = []  # for each training file: the text that replaces "train" → the file
    for path in training:
        head, _, tail = around_split(path)  # train.lc.tok.de: "" and ".lc.tok.de"
        siblings = sorted(path.parent.glob("*")) if path.parent.is_dir() else []
        candidates.append(
            {
                other.name[len(head) : len(other.name) - len(tail)]: other
                for other in siblings
                if other.name.startswith(head)
                and other.name[len(head) :].endswith(tail)
                and around_split(other)[0] == head
                and split_in_name(other) == split
            }
        )
    common = [name for name in candidates[0] if all(name in others for others in candidates)]
    if not common:
        return ()
    shortest = min(common, key=lambda name: (len(name), name))
    return tuple(others[shortest] for others in candidates)


def _sibling_folder_files(training: Sequence[Path], split: str) -> tuple[Path, ...]:
    """The files of the same names in the folder of a split, beside a folder named train."""
    folders = {path.parent.resolve() for path in training}
    if len(folders) != 1 or split_in_name(min(folders)) != "train":
        return ()
    siblings = sorted(path for path in min(folders).parent.iterdir() if path.is_dir() and split_in_name(path) == split)
    for folder in siblings:
        files = tuple(training[0].parent.parent / folder.name / path.name for path in training)
        if all(path.is_file() for path in files):
            return files
    return ()
