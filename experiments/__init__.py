"""The paper's experiments again, against every baseline of its main table and today's. Not part of the wheel.

python -m experiments --help lists the commands. One module for each:

reproduction.py   `reproduce`: all methods on the targets of a folder of tasks. plan.py: the rows, and what the paper
                  says came out; experiment.py: answers of all rows; published.py: the paper's method and what it
                  tunes; tuning.py: the baselines and what each chooses; parts.py: the figure over K and the ablations;
                  asap.py: another clustering; bench.py: targets without their labels, and a run that stores every
                  answer; results.py: answers -> results.json; baselines/: what RobustTC-FSL is compared with
comparison.py     `compare`: a model against scikit-learn and SetFit on the same encoder; label_names.py: other names
held_out.py       `held-out`: every source of a bank held out once
several.py        `several`: whether several metrics pay; clusterings.py: clusters found, known, random
families.py, grid.py   clusters against families; examples by labels
steps.py, starter.py, from_starter.py   gradient steps by setting; the starter model; small banks in addition to it
amazon.py         `data`: the paper's data, fetched and checked; repeated.py: `data repeated`, repeated texts
page.py           `page`: stored results (kept/) -> docs/results.md (templates/, page_values.py, at_a_glance.py)
options.py        how a command runs, stores and prints; banks.py, problems.py, intervals.py, figures.py, markdown.py
"""
