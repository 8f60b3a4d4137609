"""Write predictions and outcomes as Parquet files, each record once."""
