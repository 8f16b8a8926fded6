// Runs the compiled core without memory: every allocation fails once, in every job.
//
// A job has to end with std::bad_alloc or with the result that it has otherwise, since a team that
// lacks memory for a thread does its work with fewer.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <new>
#include <vector>

#include "dispatch.hpp"
#include "forest.hpp"
#include "nearest.hpp"
#include "solver.hpp"

namespace {

std::atomic<long> until_failure{-1};  // allocations that succeed before one fails; below 0: all

void* allocate(std::size_t size, std::size_t alignment) {
    if (until_failure.load() >= 0 && until_failure.fetch_sub(1) == 0) throw std::bad_alloc();
    void* const memory = std::aligned_alloc(alignment, (size / alignment + 1) * alignment);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}

}  // namespace

void* operator new(std::size_t size) { return allocate(size, alignof(std::max_align_t)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
    return allocate(size, std::size_t(alignment));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    try {
        return operator new(size);
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace {

constexpr std::size_t kRows = 4200, kFeatures = 4, kMembers = 3, kComponents = 2, kThreads = 3;

// Rows with a bundle of columns, and what else the jobs need.
struct Data {
    Data() : x(kRows * kFeatures), group(kRows), bins(kRows * kFeatures) {
        std::uint32_t state = 1;
        const auto next = [&] { return state = state * 1664525U + 1013904223U; };
        for (std::size_t i = 0; i < kRows; ++i) {
            x[i * kFeatures] = double(next() >> 20U) / 16;
            x[i * kFeatures + 1 + next() % 3] = 255;
            group[i] = std::int32_t(next() % kMembers);
        }
        for (std::uint8_t& bin : bins) bin = std::uint8_t(next() >> 24U);
        for (const std::int32_t number : group)
            labels.push_back(std::uint16_t(number ? qms22::kOne : 0));
    }

    qms22::Task task() const {
        const qms22::StridedTable rows = {x.data(), kRows, kFeatures, kFeatures, 1};
        return {rows,        group.data(), kMembers, weight.data(), nullptr,     kMembers,
                kComponents, 0.5,          1e-12,    1e-9,          1.0 / 25500, 0.01};
    }

    std::vector<double> start() const {
        std::vector<double> coefficients(kMembers * kComponents * (kFeatures + 1));
        for (std::size_t i = 0; i < kMembers; ++i)
            coefficients[i * kComponents * (kFeatures + 1) + kFeatures] = 1;
        return coefficients;
    }

    std::vector<double> x, weight = {0.7, 0.7, 0.7, 0, 1, 0, 0, 0, 1};
    std::vector<std::int32_t> group;
    std::vector<std::uint8_t> bins;
    std::vector<std::uint16_t> labels;
};

using Job = std::function<std::vector<double>()>;

std::vector<double> solve(const Data& data, bool single_precision) {
    const auto solver = qms22::make_solver(data.task(), data.start(), single_precision, kThreads,
                                           qms22::choose_instruction_set());
    const qms22::SweepResult result = solver->sweep();
    std::vector<double> found = solver->coefficients();
    found.push_back(result.change);
    return found;
}

std::vector<double> grow(const Data& data) {
    const qms22::BinnedRows rows = {data.bins.data(), kRows, kFeatures};
    const qms22::Forest forest =
        qms22::grow_forest(rows, data.labels.data(), {4, 2, 500, 0, kThreads});
    const qms22::TreeNodes& nodes = forest.nodes;
    const qms22::ForestView view = {nodes.feature.data(),     nodes.child.data(),
                                    nodes.threshold.data(),   nodes.value.data(),
                                    forest.first_node.data(), forest.first_node.size() - 1};
    std::vector<double> scores(kRows);
    qms22::forest_scores(rows, view, kThreads, scores.data());
    return scores;
}

std::vector<double> measure(const Data& data) {
    const std::size_t n_references = 40;
    std::vector<double> products(kRows);
    qms22::nearest_products<double>(
        {data.x.data(), kRows, kFeatures}, {data.x.data(), n_references, kFeatures}, nullptr, 1e-9,
        kThreads, qms22::choose_instruction_set().nearest->in_double, products.data());
    return products;
}

// Returns how many allocations of the job failed in turn, or -1 if its result was once wrong.
long fail_each_allocation(const Job& job) {
    const std::vector<double> expected = job();
    for (long number = 0;; ++number) {
        until_failure = number;
        bool is_right = true;
        try {
            const std::vector<double> found = job();
            const bool failed_none = until_failure >= 0;
            until_failure = -1;
            is_right = found == expected;
            if (failed_none) return is_right ? number : -1;
        } catch (const std::bad_alloc&) {
            until_failure = -1;
        }
        if (!is_right) return -1;
    }
}

}  // namespace

int main() {
    const Data data;
    const Job jobs[] = {[&] { return solve(data, false); }, [&] { return solve(data, true); },
                        [&] { return grow(data); }, [&] { return measure(data); }};
    for (const Job& job : jobs) std::printf("%ld\n", fail_each_allocation(job));
}
