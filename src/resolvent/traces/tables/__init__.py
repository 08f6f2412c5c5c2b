"""Tables: data frames, Arrow, CSV and Parquet of any layout ↔ `TraceSet`."""
