"""Few-shot text classification with many metrics."""
