"""manyheads."""
