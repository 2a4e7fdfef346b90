"""What every head computes for one text: traces, and maps between tokens, characters or words."""
