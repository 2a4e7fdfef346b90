"""Terms: glossaries, and phrases that an output must contain."""
