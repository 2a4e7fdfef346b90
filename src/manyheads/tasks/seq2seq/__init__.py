"""The seq2seq task."""
