"""Importers: exports of other programs -> tasks."""
