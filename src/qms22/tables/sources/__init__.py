"""Tables in files and frames: the interface, one module for each format, and their layout."""
