"""Training of sentence encoders in torch, which is imported below here only."""

from manymetrics.errors import MissingExtra

try:
    import torch  # noqa: F401 - the modules below import it
except ModuleNotFoundError as missing:
    raise MissingExtra(
        'Training an encoder needs torch, which is not installed. Install it with: pip install "manymetrics[train]"'
    ) from missing
