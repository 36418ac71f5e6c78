"""Training of encoders in torch, which is imported below here only."""

import contextlib
from collections.abc import Iterator

from manymetrics.errors import MissingExtra

try:
    import torch
except ModuleNotFoundError as missing:
    raise MissingExtra(
        'Training an encoder needs torch, which is not installed. Install it with: pip install "manymetrics[train]"'
    ) from missing


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """One thread of torch, because the number of threads changes the bits; restored at the end."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
