"""The tag task."""
