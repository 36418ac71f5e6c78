"""Queues, limits, measurements and logs of one process."""
