"""What a recipe costs before anything is prepared: parameters, FLOP, memory, time and money."""
