"""A model -> its card: what it is, what it was made of, and how to use it, for people."""

import html
import re
from collections.abc import Sequence

from manymetrics.model.origin import Origin
from manymetrics.recipe import WORDS


def model_card(origin: Origin, notes: str = "") -> str:
    """The README of a saved model, with further notes in Markdown."""
    clusters, recipe = origin.clusters, origin.recipe
    words = recipe.encoder == WORDS
    encoder = f"word vectors: {_join([recipe.vectors])}" if words else f"sentence encoder: {_join([recipe.encoder])}"
    groups = "\n".join(f"| {number} | {len(group)} | {_join(group)} |" for number, group in enumerate(clusters))
    by_labels = "".join(
        f"\n{len(shared.tasks)} tasks have the labels {_join(shared.labels)}: a new task with the same ones is "
        "answered by\nmetrics learned from these alone.\n"
        for shared in origin.by_labels
    )
    appended = f"\n{notes}" if notes else ""
    return f"""---
library_name: manymetrics
pipeline_tag: text-classification
tags: [few-shot, text-classification, metric-learning]
---

# A manymetrics model

{len(origin.metrics)} metrics, learned from {len(clusters.names)} tasks in {len(clusters)} clusters; a new task with a
handful of examples gets its own combination of them.

```python
import manymetrics as mm

classifier = mm.load_model("this folder").adapt(texts, labels)
classifier.predict(["a new text"])
```

| cluster | tasks | names |
|---|---|---|
{groups}
{by_labels}
- bank: `{origin.bank_fingerprint}`
- {encoder}; seed {recipe.seed}

The encoders were trained on the texts of the tasks above; they hold no text, but what they were trained on can leave
traces. Share the model only with those who may know that these tasks exist.
{appended}"""


def _join(names: Sequence[str]) -> str:
    """Names in which nothing is markup, neither of HTML nor of Markdown, and that stay in their cell."""
    escaped = (html.escape(" ".join(name.split())) for name in names)
    return ", ".join(re.sub(r"([\\`*_{}\[\]()#+!|~])", r"\\\1", name) for name in escaped)
