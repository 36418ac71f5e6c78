"""Readers: files -> rows -> Examples."""
