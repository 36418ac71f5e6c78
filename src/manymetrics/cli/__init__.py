"""The command line: an ordinary user of the library, with data on stdout and everything else on stderr.

    door.py        the group of commands; errors -> one line and an exit code
    learning.py    learn, recipe
    answering.py   adapt, predict
    judging.py     evaluate
    looking.py     inspect, vectors list, vectors get
    showing.py     demo
    keeping.py     runs list, runs show, runs gc
    output.py      lines, tables and JSON         progress.py   how far a long command has come

Only the front door `manymetrics` is used, and nothing heavy is loaded before a command asks for it.
"""

from manymetrics.cli.answering import adapt, predict
from manymetrics.cli.door import main
from manymetrics.cli.judging import evaluate
from manymetrics.cli.keeping import runs
from manymetrics.cli.learning import learn, recipe
from manymetrics.cli.looking import inspect, vectors
from manymetrics.cli.showing import demo

for command in (demo, inspect, vectors, recipe, learn, runs, adapt, predict, evaluate):
    main.add_command(command)

__all__ = ["main"]
