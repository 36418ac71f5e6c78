"""`python -m manymetrics.cli`, the same as the script `manymetrics`."""

from manymetrics.cli import main

if __name__ == "__main__":
    main(prog_name="manymetrics")
