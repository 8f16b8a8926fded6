"""Tables in databases: their names, drivers, types and rows."""
