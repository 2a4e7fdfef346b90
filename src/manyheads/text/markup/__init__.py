"""Markup: HTML and what else a translation copies, and tags put around translated words."""
