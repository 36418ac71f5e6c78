"""A model -> its card: what it is, what it was made of, and how to use it, for people."""

import html
import re

from manymetrics.model.origin import Origin
from manymetrics.recipe import WORDS, Recipe
from manymetrics.weigh.pooling import USUAL, share_by_group
from manymetrics.weigh.settings import MixSettings


def model_card(origin: Origin) -> str:
    """The README of a saved model."""
    clusters, recipe, settings = origin.clusters, origin.recipe, origin.settings
    groups = "\n".join(
        f"| {number} | {len(group)} | {', '.join(map(_plain, group))} |" for number, group in enumerate(clusters)
    )
    return f"""---
library_name: manymetrics
pipeline_tag: text-classification
tags: [few-shot, text-classification, metric-learning]
---

# A manymetrics model

{len(origin.metrics)} metrics, learned from {len(clusters.names)} tasks in {len(clusters)} clusters, to be mixed for
a new task with a handful of examples.

```python
import manymetrics as mm

classifier = mm.load_model("this folder").adapt(texts, labels)
classifier.predict(["a new text"])
```

| cluster | tasks | names |
|---|---|---|
{groups}
{_by_labels(origin)}
- bank: `{origin.bank_fingerprint}`
- {_base(recipe)}; seed {recipe.seed}
- settings of the mix: {_shares(settings)}; prior worth {settings.prior_shots:g} shots, likelihood temperature
  {settings.likelihood_temperature:g}, threshold {settings.threshold:g}

The encoders were trained on the texts of the tasks above; they hold no text, but what they were trained on can leave
traces. Share the model only with those who may know that these tasks exist.
"""


def _by_labels(origin: Origin) -> str:
    """Which labels have metrics of their own, a paragraph each."""
    return "".join(
        f"\n{len(one.tasks)} tasks have the labels {', '.join(map(_plain, one.labels))}: a new task with the same ones "
        "is answered by\nmetrics learned from these alone.\n"
        for one in origin.by_labels
    )


def _base(recipe: Recipe) -> str:
    if recipe.encoder != WORDS:
        return f"sentence encoder: {_plain(recipe.encoder)}"
    return f"word vectors: {_plain(recipe.vectors)}; window {recipe.window}, {recipe.width} filters"


def _shares(settings: MixSettings) -> str:
    """What kinds of metrics count for, or what groups of them do in a usual problem."""
    if exponents := settings.exponents or settings.exponents_without_names:
        told = ", ".join(f"{_plain(group)} {share:.0%}" for group, share in share_by_group(exponents, USUAL).items())
        return f"{told} with {USUAL.examples_per_label:g} examples of each of {USUAL.labels} labels"
    return ", ".join(f"{kind} {share:g}" for kind, share in settings.shares.items()) or "all kinds alike"


def _plain(name: str) -> str:
    """A task's name in which nothing is markup, neither of HTML nor of Markdown, and that stays in its cell."""
    return re.sub(r"([\\`*_{}\[\]()#+!|~])", r"\\\1", html.escape(" ".join(name.split())))
