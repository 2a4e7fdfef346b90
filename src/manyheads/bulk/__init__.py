"""Bulk jobs: the lines of large files in numbered shards, answered by processes or by Ray, one file per shard."""
