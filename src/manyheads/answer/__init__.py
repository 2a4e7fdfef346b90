"""The one way from a text to an answer, for `predict`, shards, HTTP and the lens."""
