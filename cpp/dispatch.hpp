// The instruction sets the kernel was compiled for, and which of them this CPU runs.
#pragma once

#include <string>
#include <vector>

#include "kernel.hpp"

namespace qms22 {

struct InstructionSet {
    const char* name;
    bool (*runs_here)();
    const Kernel<double>* in_double;
    const Kernel<float>* in_float;

    template <class Real>
    const Kernel<Real>& kernel() const;
};

// From the oldest to the newest.
const std::vector<InstructionSet>& instruction_sets();

// The newest this CPU runs, or the named one; throws std::invalid_argument where that cannot be.
const InstructionSet& choose_instruction_set(const std::string& name = "");

}  // namespace qms22
