"""`python -m manymetrics.cli`, where the script `manymetrics` is not on the path."""

from manymetrics.cli import main

if __name__ == "__main__":
    main(prog_name="manymetrics")
