"""What every head does over many texts: counts, role cards, examples, similarity, timelines."""
