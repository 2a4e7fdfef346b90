"""The lens page: its application, what it computes for a text, and its saved file."""
