"""`python -m experiments`: the experiments' own command line."""

from experiments.commands import main

if __name__ == "__main__":
    main(prog_name="python -m experiments")
