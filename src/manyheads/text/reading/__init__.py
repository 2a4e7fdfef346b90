"""Readers: files, lines and rows of every format, lazy and in constant memory.

To add a format of tables, such as .xlsx, add one file to `formats/`: a subclass of `TableFormat` with its suffixes, a
method that yields its rows and a method that returns the names of its columns, and an object of it called `FORMAT`. The
file is found by being there: `read_rows`, the columns that `manyheads init` looks at, the suffixes in errors and in
`--help` all follow. Text that is not a table has a reader of its own: `documents.py`, `tagged_readers.py`,
`gold_alignments.py`.
"""
