"""The service: many clients, one model, over HTTP.

    settings.py      what the operator sets, checked            problems.py     what can go wrong, with its HTTP status
    database.py      engine, transactions, migrations           records.py      the tables
    tenants.py       tenants and their keys                     limits.py       how much each tenant may ask for
    classifiers.py   the verbs: create, change, delete ...      versions.py     history of a classifier, roll back
    answers.py       the verbs: predict, explain, evaluate ...  models.py       registered models, and the live one
    cache.py         classifiers that are fitted already        queue.py        fair queue, micro-batches
    idempotency.py   a repeated request is done once            assembly.py     one `Service` made of all this
    api/             routes of the HTTP API                     web/            the pages

Everything here uses the public names of `manymetrics` only, as any other program would. It needs the extra `service`.
"""
