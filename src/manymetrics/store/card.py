"""A model -> its card: what it is, what it was made of, and how to use it, for people."""

from manymetrics.recipe import Recipe
from manymetrics.values import Clusters
from manymetrics.weigh.rules import Rules


def model_card(recipe: Recipe, clusters: Clusters, rules: Rules, *, bank: str) -> str:
    """The README of a saved model."""
    groups = "\n".join(f"| {number} | {len(group)} | {', '.join(group)} |" for number, group in enumerate(clusters))
    shares = ", ".join(f"{kind} {share:g}" for kind, share in rules.shares.items()) or "all kinds alike"
    return f"""---
library_name: manymetrics
pipeline_tag: text-classification
tags: [few-shot, text-classification, metric-learning]
---

# A manymetrics model

{len(clusters)} metrics learned from {len(clusters.names)} tasks, to be mixed for a new task with a handful of examples.

```python
import manymetrics as mm

classifier = mm.load_model("this folder").adapt(texts, labels)
classifier.predict(["a new text"])
```

| cluster | tasks | names |
|---|---|---|
{groups}

- bank: `{bank}`
- word vectors: {recipe.vectors}; window {recipe.window}, {recipe.width} filters; seed {recipe.seed}
- rules of the mix: {shares}; strength {rules.strength:g}, threshold {rules.threshold:g}

The encoders were trained on the texts of the tasks above; they hold no text, but what they were trained on can leave
traces. Share the model only with those who may know that these tasks exist.
"""
