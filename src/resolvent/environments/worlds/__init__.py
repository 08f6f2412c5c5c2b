"""The worlds themselves, each a class of rules and how it is drawn."""
