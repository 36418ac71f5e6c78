"""Training of sentence encoders in torch, which is imported below here only."""

from manymetrics.errors import MissingExtra

try:
    import torch
except ModuleNotFoundError as missing:
    raise MissingExtra(
        'Training an encoder needs torch, which is not installed. Install it with: pip install "manymetrics[train]"'
    ) from missing
