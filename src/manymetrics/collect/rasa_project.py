"""A Rasa project -> Examples: all NLU files of a folder are one task.

`rasa data split nlu` writes a copy of the examples, split in two, into the folder `train_test_split`. Where there is
one, it is the split, and the other files are not read again: what counts twice would be in train and in test.
"""

from collections.abc import Iterator
from pathlib import Path

from manymetrics.collect.opening import files_below, require_inside
from manymetrics.collect.options import Options
from manymetrics.collect.rasa import JSON_ENDINGS, MARKDOWN_ENDINGS, YAML_ENDINGS, is_rasa, read_rasa
from manymetrics.collect.tables import WHOLE, Found

SPLIT_FOLDER = "train_test_split"
PARTS = {"training_data": "train", "test_data": "test"}  # by the names of the files in that folder
ENDINGS = (*YAML_ENDINGS, *MARKDOWN_ENDINGS, *JSON_ENDINGS)


def read_rasa_source(source: Path, options: Options) -> Iterator[Found]:
    """The examples of one Rasa NLU file, or of all such files below a folder."""
    if source.is_file():
        yield options.task, WHOLE, read_rasa(source, options.log)
        return
    files = rasa_files(source)
    split = {path: PARTS[path.stem] for path in files if _is_split(path)}
    if set(split.values()) == set(PARTS.values()):
        others = len(files) - len(split)
        options.log.notes.append(
            f"{next(iter(split)).parent}: taken as the split in train and test"
            + (f"; {others} other files, of which it is a copy, are not read again." if others else ".")
        )
        files = list(split)
    else:  # half a split is a copy of what is elsewhere
        files, split = [path for path in files if path not in split] or files, {}
    for path in files:
        yield options.task, split.get(path, WHOLE), read_rasa(path, options.log)


def rasa_files(folder: Path) -> list[Path]:
    """The files below a folder that hold Rasa NLU examples."""
    found = [path for path in files_below(folder) if path.suffix in ENDINGS]
    return [path for path in found if is_rasa(require_inside(path, folder))]


def _is_split(path: Path) -> bool:
    return path.absolute().parent.name == SPLIT_FOLDER and path.stem in PARTS
