"""Look at a data set, propose a recipe for it and this machine, and estimate the training time."""
