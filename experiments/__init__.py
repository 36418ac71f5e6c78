"""The paper's experiments again, against every baseline of its main table and today's. Not part of the wheel.

python -m experiments reproduce amazon --data DIR --out OUT    all methods on the targets of a folder of tasks
python -m experiments compare --data DIR --out OUT             a model against scikit-learn on the same encoder;
                                                               --with setfit: against SetFit on it, too
python -m experiments held-out --data DIR --out OUT            every source of a bank held out once
python -m experiments several --data DIR --out OUT             whether several metrics pay, on one bank or several
python -m experiments page --amazon OUT                        keep the results, and write docs/results.md
python -m experiments data get amazon --out DIR                fetch the paper's public data; `data check` looks it over

plan.py           what is compared, and what the paper says came out
experiment.py     the rows of the table
published.py      the paper's method with its own mix, and what it tunes; networks.py has those of its clusters
convex.py         the weights of the paper's mix
tuning.py         what each baseline may choose; problems.py draws the few-shot problems of past tasks to choose on
parts.py          the figure over K, the ablations, clusters drawn at random
bench.py          targets to answer without their labels, and a run that keeps every answer
baselines/        what RobustTC-FSL is compared with
asap.py, clusterings.py    other clusters than the method's own
results.py, intervals.py   answers -> results.json
reproduction.py   all of the above, from a folder of tasks to a folder of results
comparison.py     a model against scikit-learn on the same encoder; german.py has label names in another language,
                  setfit_rows.py SetFit's answers, kept target by target
families.py, grid.py       clusters against known families; examples a label by number of labels
held_out.py       each fold of sources answered by what was learned from the others
several.py        clusters found, known and drawn at random (partings.py), their metrics (cluster_metrics.py) and what
                  these answer (metric_answers.py) on held-out tasks; banks.py joins folders, several_rows.py has the
                  command, several_page.py the words of the page
figures.py        results -> SVG figures
page.py, kept/    results.json -> docs/results.md; its first screen is made by glance.py, its words by markdown.py; of
                  each chapter, data and versions by provenance.py, tables by page_tables.py, what it says of the
                  paper by against_paper.py; compared_page.py has the sections of `compare`
amazon.py, fetching.py     the paper's data, fetched and checked
commands.py, data_commands.py   the command line
"""
