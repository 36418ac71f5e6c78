"""The HTML page and the figures of an experiment: sections about its results beside those about its model."""
