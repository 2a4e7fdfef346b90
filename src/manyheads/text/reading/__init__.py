"""Readers: files, lines and rows of every format, lazy and in constant memory."""
