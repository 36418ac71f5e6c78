"""Folders of tasks: reading, writing, reporting, and the generated sample bank."""
