"""The SQLite engine: connections, transactions, the writer, error translation."""
