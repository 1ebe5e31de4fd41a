//! Parquet shards.
