"""The HTTP service: its APIs, the guard before them, the queue and the worker processes."""
