"""Make a bundle smaller and faster, and measure what that costs: prune, quantize, shortlist."""
