"""The service: many clients, one model, over HTTP.

It uses the public names of `manymetrics` only, as any other program would. It needs the extra `service`.
"""
