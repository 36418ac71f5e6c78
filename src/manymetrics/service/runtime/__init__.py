"""Queues, limits, log and measurements of one process."""
