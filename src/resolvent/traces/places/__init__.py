"""Places: folders, globs, lists and addresses of Parquet files ↔ rows of whole episodes."""
