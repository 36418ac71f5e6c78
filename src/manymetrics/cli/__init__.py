"""The command line: an ordinary user of the library, with data on stdout and everything else on stderr.

    group.py       the group of commands; errors -> one line and an exit code
    learning.py    learn, recipe
    adapting.py    adapt, doctor
    answering.py   predict, explain
    judging.py     evaluate
    gathering.py   import, export
    looking.py     inspect, vectors list, vectors get, encoders list, encoders get
    reporting.py   report
    showing.py     demo
    keeping.py     runs list, runs show, runs gc
    serving.py     serve, service                 sharing.py    tasks of a service, to learn from
    operating.py   service backup, service restore, service move
    input.py       texts                          output.py     lines, tables and JSON
    progress.py    how far a long command has come

Only the public names of `manymetrics` are used, and nothing heavy is loaded before a command asks for it.
"""

from manymetrics.cli.adapting import adapt, doctor
from manymetrics.cli.answering import explain, predict
from manymetrics.cli.gathering import export, import_
from manymetrics.cli.group import main
from manymetrics.cli.judging import evaluate
from manymetrics.cli.keeping import runs
from manymetrics.cli.learning import learn, recipe
from manymetrics.cli.looking import encoders, inspect, vectors
from manymetrics.cli.operating import backup, move, restore
from manymetrics.cli.reporting import report
from manymetrics.cli.serving import serve, service
from manymetrics.cli.showing import demo

for command in (demo, import_, export, inspect, vectors, encoders, recipe, learn, runs, adapt, doctor, predict,
                explain, evaluate, report, serve, service):  # fmt: skip
    main.add_command(command)
for command in (backup, restore, move):
    service.add_command(command)

__all__ = ["main"]
