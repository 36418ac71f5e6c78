"""The service: many clients, one model, over HTTP.

    settings.py      what the operator sets, checked            problems.py     what can go wrong, with its HTTP status
    database.py      engine, transactions, migrations           records.py      the tables
    tenants.py       tenants and their keys                     limits.py       how fast each tenant may ask
    classifiers.py   the verbs: create, change, roll back ...   rows.py         their rows, found and made
    answers.py       the verbs: predict, explain, evaluate ...  values.py       what the verbs give back
    fitting.py       examples -> a classifier, its estimate     cache.py        classifiers that are fitted already
    models.py        registered models, and the live one        readapting.py   every classifier meets a new model
    sharing.py       tasks that clients share                   queue.py        fair queue, micro-batches
    idempotency.py   a repeated request is done once            measures.py     counts and times
    assembly.py      one `Service` made of all this
    api/             routes of the HTTP API                     web/            the pages

Everything here uses the public names of `manymetrics` only, as any other program would. It needs the extra `service`.
"""
