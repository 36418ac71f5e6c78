"""`python -m manymetrics` is the command `manymetrics`."""

from manymetrics.cli import main

main()
