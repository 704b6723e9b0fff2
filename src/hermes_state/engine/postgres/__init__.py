"""PostgreSQL as the database of a history that several machines share."""
