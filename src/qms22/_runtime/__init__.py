"""The ground floor: arrays, devices, threads, files, memory, progress; nothing of QMS itself."""
