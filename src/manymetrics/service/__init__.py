"""The service: many clients, one model, over HTTP.

    settings.py   what the operator sets
    domain/       what the service does for its tenants: classifiers, answers, models, keys
    storage/      the database: tables, migrations, idempotency, backups
    runtime/      scheduler, metrics, logs
    http/         the routes of the HTTP API
    web/          the pages

The service uses the public names of `manymetrics` only, as any other program would. It needs the extra `service`.
"""
