"""What a world looks like now → text or pixels."""
