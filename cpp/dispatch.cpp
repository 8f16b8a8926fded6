#include "dispatch.hpp"

#include <stdexcept>

#include "compiler.hpp"

namespace qms22 {

namespace scalar {
extern const Kernel<double> kernel_double;
extern const Kernel<float> kernel_float;
extern const NearestKernels nearest_kernels;
}  // namespace scalar
#if defined(QMS22_X86)
namespace sse2 {
extern const Kernel<double> kernel_double;
extern const Kernel<float> kernel_float;
extern const NearestKernels nearest_kernels;
}  // namespace sse2
namespace avx2 {
extern const Kernel<double> kernel_double;
extern const Kernel<float> kernel_float;
extern const NearestKernels nearest_kernels;
}  // namespace avx2
namespace avx512 {
extern const Kernel<double> kernel_double;
extern const Kernel<float> kernel_float;
extern const NearestKernels nearest_kernels;
}  // namespace avx512
#elif defined(QMS22_GENERIC)
namespace generic {
extern const Kernel<double> kernel_double;
extern const Kernel<float> kernel_float;
extern const NearestKernels nearest_kernels;
}  // namespace generic
#endif

template <>
const Kernel<double>& InstructionSet::kernel<double>() const {
    return *in_double;
}

template <>
const Kernel<float>& InstructionSet::kernel<float>() const {
    return *in_float;
}

const std::vector<InstructionSet>& instruction_sets() {
    static const std::vector<InstructionSet> all = {
        {"scalar", [] { return true; }, &scalar::kernel_double, &scalar::kernel_float,
         &scalar::nearest_kernels},
#if defined(QMS22_X86)
        {"sse2", [] { return true; }, &sse2::kernel_double, &sse2::kernel_float,
         &sse2::nearest_kernels},
        {"avx2", cpu_has_avx2, &avx2::kernel_double, &avx2::kernel_float, &avx2::nearest_kernels},
        {"avx512", cpu_has_avx512, &avx512::kernel_double, &avx512::kernel_float,
         &avx512::nearest_kernels},
#elif defined(QMS22_GENERIC)
        {"generic", [] { return true; }, &generic::kernel_double, &generic::kernel_float,
         &generic::nearest_kernels},
#endif
    };
    return all;
}

const InstructionSet& choose_instruction_set(const std::string& name) {
    const std::vector<InstructionSet>& all = instruction_sets();
    std::string known;
    const InstructionSet* chosen = nullptr;
    for (const InstructionSet& set : all) {
        if (name.empty() ? set.runs_here() : name == set.name) chosen = &set;
        known += (known.empty() ? "" : ", ") + std::string(set.name);
    }
    if (!chosen)
        throw std::invalid_argument("unknown instruction set '" + name + "'; this build has " +
                                    known);
    if (!chosen->runs_here())
        throw std::invalid_argument("this CPU does not run the instruction set '" + name + "'");
    return *chosen;
}

}  // namespace qms22
