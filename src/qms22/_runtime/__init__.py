"""General tools: arrays, devices, threads, files, memory, progress, optional packages."""
