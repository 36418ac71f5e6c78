"""A bank of two families of tasks, small enough to see through."""

import numpy as np

from manymetrics.values import Examples, Task, TaskBank

FAMILIES = {
    "colour": {"red": "crimson scarlet ruby", "green": "emerald jade olive", "blue": "azure navy cobalt"},
    "animal": {"bird": "robin sparrow eagle", "fish": "salmon trout cod", "cat": "tabby siamese lynx"},
}
NOISE = ["the", "a", "some", "that", "here", "there", "now", "then", "please", "well", "so", "very"]


def planted_task(name, family, *, size, seed, valid=True):
    """A task whose label is decided by one word of its family, hidden among words that say nothing."""
    rng = np.random.default_rng(seed)

    def examples(count):
        labels = [label for label in FAMILIES[family] for _ in range(count)]
        texts = [
            " ".join(rng.permutation([*rng.choice(NOISE, 3), rng.choice(FAMILIES[family][label].split())]))
            for label in labels
        ]
        return Examples(tuple(texts), tuple(f"{label}" for label in labels))

    return Task(name, examples(size), examples(3) if valid else Examples(), examples(4))


def planted_bank(tasks=2, *, size=6, valid=True):
    """`tasks` tasks of each of the two families, with names that say which."""
    return TaskBank(
        tuple(
            planted_task(f"{family}-{number}", family, size=size, seed=10 * number + len(family), valid=valid)
            for family in FAMILIES
            for number in range(tasks)
        )
    )
