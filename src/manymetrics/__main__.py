"""`python -m manymetrics` is the command `manymetrics`."""

from manymetrics.cli import main

if __name__ == "__main__":
    main(prog_name="manymetrics")
