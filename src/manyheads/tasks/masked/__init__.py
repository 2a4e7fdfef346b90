"""The masked task."""
