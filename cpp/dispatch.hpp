// The instruction sets that the kernel is compiled for, and the choice among them.
#pragma once

#include <string>
#include <vector>

#include "kernel.hpp"
#include "nearest_kernel.hpp"

namespace qms22 {

struct InstructionSet {
    const char* name;
    bool (*runs_here)();
    const Kernel<double>* in_double;
    const Kernel<float>* in_float;
    const NearestKernels* nearest;

    template <class Real>
    const Kernel<Real>& kernel() const;
};

// From the oldest to the newest.
const std::vector<InstructionSet>& instruction_sets();

// The newest one that this CPU runs, or the named one. Throws std::invalid_argument if the name is
// unknown or the CPU does not run it.
const InstructionSet& choose_instruction_set(const std::string& name = "");

}  // namespace qms22
