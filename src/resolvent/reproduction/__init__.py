"""The paper's three experiments: what to run, running it, and what came out, each apart."""
