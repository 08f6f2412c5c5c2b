"""Learning: an environment, and perhaps a model → what acting is worth, found by trying."""
