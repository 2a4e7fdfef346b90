"""The classify task."""
