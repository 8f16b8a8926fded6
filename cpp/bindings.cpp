// The Python module qms22._core: NumPy arrays in, NumPy arrays out. It checks shapes; the Python
// code checks values, because it knows the names that users have for them.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "dispatch.hpp"
#include "forest.hpp"
#include "nearest.hpp"
#include "solver.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using qms22::Solver;

using Input = nb::ndarray<const double, nb::ndim<2>, nb::device::cpu>;
using Doubles1 = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Doubles2 = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Doubles3 = nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Groups = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Bins = nb::ndarray<const std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class Value>
using Vector = nb::ndarray<const Value, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void require(bool condition, const char* message) {
    if (!condition) throw std::invalid_argument(message);
}

qms22::StridedTable as_strided(const Input& x) {
    return {x.data(), x.shape(0), x.shape(1), x.stride(0), x.stride(1)};
}

// A (m, q, p) and b (m, q) as one (m, q, p + 1): b follows its row of A.
std::vector<double> join(const Doubles3& a, const Doubles2& b) {
    const std::size_t n = a.shape(0) * a.shape(1), p = a.shape(2);
    require(b.shape(0) == a.shape(0) && b.shape(1) == a.shape(1), "A and b differ in shape");
    std::vector<double> joined;
    joined.reserve(n * (p + 1));
    for (std::size_t i = 0; i < n; ++i) {
        joined.insert(joined.end(), a.data() + i * p, a.data() + (i + 1) * p);
        joined.push_back(b.data()[i]);
    }
    return joined;
}

template <class Value>
nb::ndarray<nb::numpy, Value> to_numpy(std::vector<Value> values,
                                       std::initializer_list<std::size_t> shape) {
    auto owned = std::make_unique<std::vector<Value>>(std::move(values));
    Value* data = owned->data();
    nb::capsule owner(owned.release(),
                      [](void* p) noexcept { delete static_cast<std::vector<Value>*>(p); });
    return {data, shape, owner};
}

// The groups of rows, each below n_groups. A copy, which no other thread can change after the
// check.
std::vector<std::int32_t> copy_groups(const Groups& group, std::size_t n_groups) {
    std::vector<std::int32_t> copy(group.data(), group.data() + group.shape(0));
    for (const std::int32_t number : copy)
        require(number >= 0 && std::size_t(number) < n_groups,
                "group holds a number without a weight");
    return copy;
}

// Checks the shapes of a task's arrays and returns a view of them.
qms22::Task as_task(const Input& x, const std::vector<std::int32_t>& group,
                    const Doubles2& group_weight, const std::optional<Doubles1>& row_weight,
                    std::size_t n_components, double alpha, double floor, double tolerance,
                    double step_a, double step_b) {
    constexpr std::size_t kMostComponents = std::numeric_limits<std::int32_t>::max();
    require(x.shape(0) > 0, "x has no rows");
    require(group.size() == x.shape(0), "group and x differ in length");
    require(!row_weight || row_weight->shape(0) == x.shape(0), "row_weight and x differ in length");
    require(group_weight.shape(0) > 0, "group_weight has no members");
    require(n_components > 0 && n_components <= kMostComponents,
            "n_components must be at least 1 and below 2^31");
    return {as_strided(x),
            group.data(),
            group_weight.shape(1),
            group_weight.data(),
            row_weight ? row_weight->data() : nullptr,
            group_weight.shape(0),
            n_components,
            alpha,
            floor,
            tolerance,
            step_a,
            step_b};
}

std::unique_ptr<Solver> build_solver(const Input& x, const Groups& group,
                                     const Doubles2& group_weight,
                                     const std::optional<Doubles1>& row_weight, const Doubles3& a,
                                     const Doubles2& b, double alpha, double floor,
                                     double tolerance, double step_a, double step_b,
                                     bool single_precision, std::size_t n_threads,
                                     const std::string& isa) {
    require(group_weight.shape(0) == a.shape(0), "group_weight and A differ in members");
    require(a.shape(2) == x.shape(1), "A and x differ in features");
    const std::vector<std::int32_t> groups = copy_groups(group, group_weight.shape(1));
    const qms22::Task task = as_task(x, groups, group_weight, row_weight, a.shape(1), alpha, floor,
                                     tolerance, step_a, step_b);
    std::vector<double> coefficients = join(a, b);
    const qms22::InstructionSet& set = qms22::choose_instruction_set(isa);
    nb::gil_scoped_release release;
    return qms22::make_solver(task, std::move(coefficients), single_precision, n_threads, set);
}

nb::ndarray<nb::numpy, double> member_values(const Input& x, const Doubles3& a, const Doubles2& b,
                                             double floor, const std::string& isa) {
    require(a.shape(2) == x.shape(1), "A and x differ in features");
    const std::vector<double> coefficients = join(a, b);
    const qms22::InstructionSet& set = qms22::choose_instruction_set(isa);
    const std::size_t n = x.shape(0), m = a.shape(0);
    std::vector<double> values(qms22::size_product(n, m));
    {
        nb::gil_scoped_release release;
        qms22::member_values(as_strided(x), m, a.shape(1), coefficients.data(), floor, set,
                             values.data());
    }
    return to_numpy(std::move(values), {n, m});
}

template <class Value>
nb::ndarray<nb::numpy, Value> to_vector(std::vector<Value> values) {
    const std::size_t size = values.size();
    return to_numpy(std::move(values), {size});
}

nb::tuple grow_forest(const Bins& bins, const Vector<std::uint16_t>& labels, std::size_t n_trees,
                      std::size_t max_features, std::size_t min_leaf, std::uint64_t seed,
                      std::size_t n_threads) {
    const std::size_t n_features = bins.shape(0), n_rows = bins.shape(1);
    require(labels.shape(0) == n_rows, "labels and bins differ in length");
    require(n_rows > 0 && n_features > 0, "bins is empty");
    require(n_rows <= qms22::kMostForestRows, "bins has too many rows");
    require(n_trees > 0 && min_leaf > 0 && n_threads > 0, "a number is 0");
    for (std::size_t i = 0; i < n_rows; ++i)
        require(labels.data()[i] <= qms22::kOne, "a label is above LABEL_ONE");
    qms22::Forest forest = [&] {
        nb::gil_scoped_release release;
        return qms22::grow_forest({bins.data(), n_rows, n_features}, labels.data(),
                                  {n_trees, max_features, min_leaf, seed, n_threads});
    }();
    qms22::TreeNodes& nodes = forest.nodes;
    return nb::make_tuple(
        to_vector(std::move(forest.first_node)), to_vector(std::move(nodes.feature)),
        to_vector(std::move(nodes.threshold)), to_vector(std::move(nodes.child)),
        to_vector(std::move(nodes.value)), to_vector(std::move(forest.out_of_bag)));
}

nb::ndarray<nb::numpy, double> forest_scores(const Bins& bins,
                                             const Vector<std::int64_t>& first_node,
                                             const Vector<std::int32_t>& feature,
                                             const Vector<std::uint8_t>& threshold,
                                             const Vector<std::int32_t>& child,
                                             const Vector<float>& value, std::size_t n_threads) {
    const std::size_t n_nodes = value.shape(0);
    require(first_node.shape(0) > 1 && feature.shape(0) == n_nodes && child.shape(0) == n_nodes &&
                threshold.shape(0) == n_nodes,
            "the arrays of the forest differ in length");
    std::vector<double> scores(bins.shape(1));
    const qms22::ForestView forest = {feature.data(), child.data(),      threshold.data(),
                                      value.data(),   first_node.data(), first_node.shape(0) - 1};
    {
        nb::gil_scoped_release release;
        qms22::forest_scores({bins.data(), bins.shape(1), bins.shape(0)}, forest, n_threads,
                             scores.data());
    }
    return to_vector(std::move(scores));
}

template <class Real>
using Table = nb::ndarray<const Real, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class Real, qms22::NearestKernel<Real> qms22::NearestKernels::* kKernel>
nb::ndarray<nb::numpy, double> nearest_products(const Table<Real>& rows,
                                                const Table<Real>& references,
                                                const std::optional<Vector<std::int64_t>>& skip,
                                                double floor, std::size_t n_threads,
                                                const std::string& isa) {
    const std::size_t n = rows.shape(0), p = rows.shape(1), n_references = references.shape(0);
    require(references.shape(1) == p && p > 0, "rows and references differ in columns");
    require(n_references > 0 && n_references <= qms22::kMostReferences,
            "no references, or too many");
    require(!skip || skip->shape(0) == n, "skip and rows differ in length");
    for (std::size_t i = 0; skip && i < n; ++i) {
        const std::int64_t own = skip->data()[i];
        require(own >= -1 && own < std::int64_t(n_references),
                "skip holds no number of a reference");
        require(own < 0 || n_references > 1, "skip leaves a row without references");
    }
    const qms22::NearestKernels& kernels = *qms22::choose_instruction_set(isa).nearest;
    std::vector<double> products(n);
    {
        nb::gil_scoped_release release;
        qms22::nearest_products<Real>({rows.data(), n, p}, {references.data(), n_references, p},
                                      skip ? skip->data() : nullptr, floor, n_threads,
                                      kernels.*kKernel, products.data());
    }
    return to_vector(std::move(products));
}

template <class Real, qms22::NearestKernel<Real> qms22::NearestKernels::* kKernel>
void define_nearest_products(nb::module_& module) {
    module.def("nearest_products", &nearest_products<Real, kKernel>, nb::arg("rows").noconvert(),
               nb::arg("references").noconvert(), nb::kw_only(), "skip"_a.none(), "floor"_a,
               "n_threads"_a = 1, "isa"_a = "",
               "Return for every row the product of (d_i + floor)^(2^-i), where d_i is the\n"
               "distance to the i-th nearest reference, i up to NEIGHBORS. References skip (n) do\n"
               "not count, unless -1.");
}

nb::dict build_info() {
    nb::list compiled, runs_here;
    for (const qms22::InstructionSet& set : qms22::instruction_sets()) {
        compiled.append(set.name);
        if (set.runs_here()) runs_here.append(set.name);
    }
    nb::dict info;
    info["compiler"] = QMS22_COMPILER;
    info["flags"] = QMS22_FLAGS;
    info["instruction_sets"] = compiled;
    info["runs_here"] = runs_here;
    info["chosen"] = qms22::choose_instruction_set().name;
    return info;
}

}  // namespace

NB_MODULE(_core, module) {
    module.doc() =
        "The compiled kernel: CPM by the interval method, member values, forests, distances.";
    nb::class_<Solver>(module, "Solver",
                       "The coordinate perturbation method on one task in memory.")
        .def(nb::new_(&build_solver), "x"_a, "group"_a, "group_weight"_a, "row_weight"_a.none(),
             "a"_a, "b"_a, nb::kw_only(), "alpha"_a, "floor"_a, "tolerance"_a, "step_a"_a,
             "step_b"_a, "single_precision"_a = false, "n_threads"_a = 1, "isa"_a = "",
             "Copy the rows x (n, p) with their group (n) and weights, group_weight\n"
             "(m, n_groups) and row_weight (n) or None; start from A (m, q, p) and b (m, q).\n\n"
             "A step is kept when it lowers the loss by more than the tolerance. The number of\n"
             "threads and the instruction set (\"\" for the best one) do not change the result.")
        .def(
            "sweep",
            [](Solver& solver) {
                const qms22::SweepResult result = [&] {
                    nb::gil_scoped_release release;
                    return solver.sweep();
                }();
                return nb::make_tuple(result.change, result.accepted);
            },
            "Try every entry once; return the change of the loss and the number of steps taken.")
        .def_prop_ro(
            "coefficients",
            [](const Solver& solver) {
                return to_numpy(solver.coefficients(), {solver.coefficients().size()});
            },
            nb::rv_policy::automatic, "A copy of A and b as one flat (m, q, p + 1), b last.")
        .def_prop_ro("row_trials", &Solver::row_trials, "Trials so far, counted once per row.")
        .def_prop_ro("slow_row_trials", &Solver::slow_row_trials,
                     "Those of row_trials that crossed a breakpoint and took the O(m) path.");
    module.attr("BLOCK_ROWS") = qms22::kBlockRows;
    module.def("member_values", &member_values, "x"_a, "a"_a, "b"_a, nb::kw_only(), "floor"_a,
               "isa"_a = "",
               "Return the member values |A x - b|^2, at least the floor, of every row: (n, m).");
    module.attr("LABEL_ONE") = qms22::kOne;
    module.def("grow_forest", &grow_forest, "bins"_a, "labels"_a, nb::kw_only(), "n_trees"_a,
               "max_features"_a, "min_leaf"_a, "seed"_a, "n_threads"_a = 1,
               "Grow extremely randomised trees on columns of bins (p, n) and labels (n) between\n"
               "0 and LABEL_ONE. Return first_node, feature, threshold, child, value and the\n"
               "out-of-bag scores; see cpp/forest.hpp.");
    module.def("forest_scores", &forest_scores, "bins"_a, "first_node"_a, "feature"_a,
               "threshold"_a, "child"_a, "value"_a, nb::kw_only(), "n_threads"_a = 1,
               "Return the mean value of every row of bins (p, n) over all trees.");
    module.attr("NEIGHBORS") = qms22::kNeighbors;
    define_nearest_products<double, &qms22::NearestKernels::in_double>(module);
    define_nearest_products<float, &qms22::NearestKernels::in_float>(module);
    module.def(
        "build_info", &build_info,
        "Return the compiler, its flags, the instruction sets compiled, those that this CPU\n"
        "runs, and the one chosen.");
}
