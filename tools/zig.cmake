# A toolchain that makes wheels for old systems on a new one: zig contains Clang, its C++ library and
# the symbols of glibc 2.28. The environment names the machine and zig's program (see tools/wheels.py).
set(machine $ENV{QMS22_WHEEL_MACHINE})
set(zig $ENV{QMS22_ZIG})

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${machine})
set(CMAKE_CXX_COMPILER ${zig} c++ -target ${machine}-linux-gnu.2.28)
# nanobind 3.1 forgets this header, and zig's C++ library does not bring it along.
set(CMAKE_CXX_FLAGS_INIT "-include cstdio")

# The archiver of this system knows only its own machine.
set(CMAKE_CXX_ARCHIVE_CREATE "${zig} ar qc <TARGET> <LINK_FLAGS> <OBJECTS>")
set(CMAKE_CXX_ARCHIVE_APPEND "${zig} ar q <TARGET> <LINK_FLAGS> <OBJECTS>")
set(CMAKE_CXX_ARCHIVE_FINISH "${zig} ranlib <TARGET>")

# zig lacks the function of libgcc that finds out what an x86 CPU can do.
if(machine STREQUAL "x86_64")
  execute_process(COMMAND cc -print-libgcc-file-name
    OUTPUT_VARIABLE libgcc OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(CMAKE_CXX_STANDARD_LIBRARIES ${libgcc})
endif()
