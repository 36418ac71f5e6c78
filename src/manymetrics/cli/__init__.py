"""The command line: data on stdout, messages and progress on stderr.

Only public names of `manymetrics` are used. numpy and other heavy packages are imported by the commands that need them.
"""

from manymetrics.cli import adapt, demo, encoders, evaluate, import_, inspect, learn, predict, report, serve, service
from manymetrics.cli.main import main

for command in (  # in the order of the help page
    demo.demo, import_.import_, import_.export, inspect.inspect, encoders.vectors, encoders.encoders, learn.recipe,
    learn.learn, adapt.adapt, adapt.doctor, predict.predict, predict.explain, predict.suggest,
    evaluate.evaluate, report.report, serve.serve, service.service,
):  # fmt: skip
    main.add_command(command)

__all__ = ["main"]
