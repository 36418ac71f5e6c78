"""`suggest`: which unlabelled texts to label next."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import manymetrics as mm
from manymetrics.cli import options
from manymetrics.cli.inputs import NewTask, read_texts
from manymetrics.cli.output import say, write_json, write_tsv


@options.command(
    "manymetrics suggest model --examples shots.tsv --input texts.txt",
    "cut -f1 new.tsv | manymetrics suggest model --classifier classifier --count 20 --json",
)
@options.model
@options.texts
@options.new_task
@options.group(
    "Output",
    options.count("--count", "Largest number of texts.", default=10, show_default=True),
    options.json_option,
)
def suggest(*, model: Path, texts: tuple[str, ...], input: str | None, text_column: str | None, count: int,
            as_json: bool, **task: Any) -> None:  # fmt: skip
    """Suggest which unlabelled texts to label next.

    Prints one line per suggestion, the most useful first: most probable label, its probability, reason and text,
    separated by tabs. A text is suggested if MODEL, adapted to the examples, is uncertain about it, or if it is far
    from all examples; suggestions differ from one another. Blank texts and duplicates are ignored.

    With --json, prints one object per line: text, reason, label, probability.
    """
    unlabelled = [text for text in read_texts(texts, input, text_column) if text.strip()]
    if not unlabelled:
        raise mm.InputError("Found no texts to choose from. Give one text per line.")
    classifier = NewTask(**task).make_classifier(mm.load_model(model))
    if classifier.fallback_:
        say(classifier.fallback_)
    for suggestion in classifier.suggest(unlabelled, count):
        if as_json:
            write_json(suggestion, indent=None)
        else:
            write_tsv(str(suggestion.label), f"{suggestion.probability:.4f}", suggestion.reason, suggestion.text)
