"""Documents to translate: what is text in a file of some format, and the file with its translation."""
