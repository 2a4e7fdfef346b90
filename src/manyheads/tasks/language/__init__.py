"""The language task."""
