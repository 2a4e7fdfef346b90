"""The text room: strings and ids, never torch.

Readers of every format, the tokenizer, and the built-in corpus with its grammar. May import settings and errors.
"""
