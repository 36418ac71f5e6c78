"""Results of `manymetrics reproduce` that are kept, and the page that is made from them."""
