#include "solver.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "team.hpp"

namespace qms22 {
namespace {

constexpr std::size_t round_up(std::size_t size, std::size_t to) {
    return (size + to - 1) / to * to;
}

// Distance between two arrays of `n_rows` in the arena. Arrays walked through side by side must not
// start at the same place within a page, or they fight over the same cache sets and loads wait for
// unrelated stores: an odd number of cache lines modulo a page keeps any 64 of them apart.
template <class Real>
std::size_t staggered_stride(std::size_t n_rows) {
    constexpr std::size_t kLinesPerPage = 4096 / kLaneBytes, kStagger = 9;
    const std::size_t n_lines = (n_rows + kLanes<Real> - 1) / kLanes<Real>;
    const std::size_t beyond = (kStagger + kLinesPerPage - n_lines % kLinesPerPage) % kLinesPerPage;
    return (n_lines + beyond) * kLanes<Real>;
}

// Row numbers in ascending order of group, the order the kernel wants its rows in.
std::vector<std::size_t> sort_by_group(const std::int32_t* group, std::size_t n_rows) {
    std::vector<std::size_t> order(n_rows);
    std::iota(order.begin(), order.end(), std::size_t(0));
    std::stable_sort(order.begin(), order.end(),
                     [group](std::size_t a, std::size_t b) { return group[a] < group[b]; });
    return order;
}

// Rows as feature-major columns and, last, the column of -1 that meets b. Padding rows copy the
// last row.
template <class Real>
void pack(const Table& x, const std::size_t* order, std::size_t first, std::size_t n_rows,
          std::size_t n_padded, std::size_t stride, Real* columns) {
    // Tile by tile, so that neither side of the transposition thrashes the cache.
    constexpr std::size_t kTile = 64;
    for (std::size_t begin = 0; begin < n_padded; begin += kTile) {
        const std::size_t end = std::min(begin + kTile, n_padded);
        for (std::size_t c = 0; c < x.n_columns; ++c) {
            for (std::size_t i = begin; i < end; ++i) {
                const std::size_t row = first + std::min(i, n_rows - 1);
                columns[c * stride + i] = Real(x(order ? order[row] : row, c));
            }
        }
    }
    std::fill_n(columns + x.n_columns * stride, n_padded, Real(-1));
}

template <class Real>
class TypedSolver final : public Solver {
  public:
    TypedSolver(const Problem& problem, std::vector<double> coefficients, std::size_t n_threads,
                const Kernel<Real>& kernel)
        : kernel_(kernel),
          coefficients_(std::move(coefficients)),
          n_rows_(round_up(problem.x.n_rows, kLanes<Real>)),
          stride_(staggered_stride<Real>(n_rows_)),
          n_blocks_((n_rows_ + kBlockRows - 1) / kBlockRows),
          n_threads_(std::max<std::size_t>(1, std::min(n_threads, n_blocks_))),
          n_groups_(problem.n_groups + 1),
          tolerance_(problem.tolerance),
          step_a_(Real(problem.step_a)),
          step_b_(Real(problem.step_b)),
          exact_step_a_(problem.step_a),
          exact_step_b_(problem.step_b),
          has_row_weight_(problem.row_weight != nullptr),
          arena_((problem.x.n_columns + 1 + problem.n_members + problem.n_components + 3 +
                  has_row_weight_) *
                 stride_),
          group_(n_rows_),
          group_weight_(problem.n_members * n_groups_),
          partial_(2 * n_blocks_) {
        rows_.stride = stride_;
        rows_.n_features = problem.x.n_columns;
        rows_.n_components = problem.n_components;
        rows_.n_members = problem.n_members;
        rows_.n_groups = n_groups_;
        rows_.group = group_.get();
        rows_.group_weight = group_weight_.get();
        Real* next = arena_.get();
        const auto take = [&](std::size_t n_arrays) {
            Real* const taken = next;
            next += n_arrays * stride_;
            return taken;
        };
        Real* const x = take(rows_.n_features + 1);
        rows_.x = x;
        rows_.value = take(rows_.n_members);
        rows_.residual2 = take(rows_.n_components);
        rows_.s1 = take(1);
        rows_.s2 = take(1);
        rows_.slack = take(1);
        Real* const row_weight = has_row_weight_ ? take(1) : nullptr;
        rows_.row_weight = row_weight;
        rows_.alpha = Real(problem.alpha);
        rows_.inverse_alpha = problem.alpha > 0 ? Real(1 / problem.alpha)
                                                : std::numeric_limits<Real>::infinity();
        rows_.floor = Real(problem.floor);
        fill(problem, x, row_weight);
        run_team(n_threads_, [this](std::size_t rank) {
            for (std::size_t member = 0; member < rows_.n_members; ++member) {
                const std::vector<Real> own = of_member(coefficients_, member);
                for_blocks(rank, [&](std::size_t, std::size_t begin, std::size_t end) {
                    kernel_.evaluate(rows_, member, own.data(), begin, end);
                });
            }
        });
    }

    SweepResult sweep() override {
        Barrier barrier(n_threads_);
        SweepResult result = {0, 0};
        // Every thread takes the same decisions from the same sums; the first one reports them.
        const std::vector<double> start = coefficients_;
        run_team(n_threads_, [&](std::size_t rank) {
            std::vector<double> own = start;
            const SweepResult mine = sweep_as(rank, barrier, own);
            if (rank == 0) {
                coefficients_ = std::move(own);
                result = mine;
            }
        });
        row_trials_ += std::int64_t(n_rows_ * coefficients_.size());
        return result;
    }

    const std::vector<double>& coefficients() const override { return coefficients_; }
    std::int64_t row_trials() const override { return row_trials_; }
    std::int64_t slow_row_trials() const override { return slow_row_trials_; }

  private:
    void fill(const Problem& problem, Real* x, Real* row_weight) {
        const std::size_t n = problem.x.n_rows;
        const std::vector<std::size_t> order = sort_by_group(problem.group, n);
        pack(problem.x, order.data(), 0, n, n_rows_, stride_, x);
        // The last group is the padding's and weighs nothing.
        for (std::size_t i = 0; i < n_rows_; ++i)
            group_[i] = i < n ? problem.group[order[i]] : std::int32_t(problem.n_groups);
        for (std::size_t member = 0; member < problem.n_members; ++member)
            for (std::size_t g = 0; g < n_groups_; ++g)
                group_weight_[member * n_groups_ + g] =
                    g < problem.n_groups
                        ? Real(problem.group_weight[member * problem.n_groups + g])
                        : Real(0);
        if (problem.row_weight)
            for (std::size_t i = 0; i < n_rows_; ++i)
                row_weight[i] = i < n ? Real(problem.row_weight[order[i]]) : Real(0);
    }

    std::vector<Real> of_member(const std::vector<double>& all, std::size_t member) const {
        const std::size_t size = rows_.n_components * (rows_.n_features + 1);
        const double* from = all.data() + member * size;
        return std::vector<Real>(from, from + size);
    }

    // Calls work(block, begin, end) for the blocks of one thread.
    template <class Work>
    void for_blocks(std::size_t rank, const Work& work) const {
        const std::size_t first = n_blocks_ * rank / n_threads_;
        const std::size_t last = n_blocks_ * (rank + 1) / n_threads_;
        for (std::size_t block = first; block < last; ++block)
            work(block, block * kBlockRows, std::min(n_rows_, (block + 1) * kBlockRows));
    }

    SweepResult sweep_as(std::size_t rank, Barrier& barrier, std::vector<double>& coefficients) {
        SweepResult result = {0, 0};
        for (std::size_t member = 0; member < rows_.n_members; ++member) {
            std::vector<Real> own = of_member(coefficients, member);
            for_blocks(rank, [&](std::size_t, std::size_t begin, std::size_t end) {
                kernel_.enter(rows_, member, own.data(), begin, end);
            });
            double* const entries = coefficients.data() + member * own.size();
            const SweepResult visit = visit_entries(rank, barrier, member, entries);
            own = of_member(coefficients, member);
            for_blocks(rank, [&](std::size_t, std::size_t begin, std::size_t end) {
                kernel_.evaluate(rows_, member, own.data(), begin, end);
            });
            result.change += visit.change;
            result.accepted += visit.accepted;
        }
        return result;
    }

    // Tries every entry (q, p + 1) of the member once, row by row, b's entry last in its row.
    SweepResult visit_entries(std::size_t rank, Barrier& barrier, std::size_t member,
                              double* entries) {
        SweepResult result = {0, 0};
        Step<Real> accepted_step = {0, 0, 0};
        const Step<Real>* accepted = nullptr;
        for (std::size_t r = 0; r < rows_.n_components; ++r) {
            for (std::size_t c = 0; c <= rows_.n_features; ++c) {
                const bool is_b = c == rows_.n_features;
                const Step<Real> step = {r, c, is_b ? step_b_ : step_a_};
                const Change change = attempt(rank, barrier, member, accepted, step);
                const bool plus = change.plus < -tolerance_;
                const bool minus = !plus && change.minus < -tolerance_;
                accepted = nullptr;
                if (plus || minus) {
                    const double exact_step = is_b ? exact_step_b_ : exact_step_a_;
                    entries[r * (rows_.n_features + 1) + c] += plus ? exact_step : -exact_step;
                    result.change += plus ? change.plus : change.minus;
                    result.accepted += 1;
                    accepted_step = {r, c, plus ? step.size : -step.size};
                    accepted = &accepted_step;
                }
            }
        }
        return result;
    }

    // One trial over all rows. The partial sums are double-buffered: a thread can be at most one
    // trial ahead of the slowest reader, so one meeting per trial is enough.
    Change attempt(std::size_t rank, Barrier& barrier, std::size_t member,
                   const Step<Real>* accepted, const Step<Real>& step) {
        if (n_threads_ == 1) {
            Change total = {0, 0, 0};
            for_blocks(0, [&](std::size_t, std::size_t begin, std::size_t end) {
                add(total, kernel_.attempt(rows_, member, accepted, step, begin, end));
            });
            slow_row_trials_ += total.slow_rows;
            return total;
        }
        const std::size_t entry = step.component * (rows_.n_features + 1) + step.feature;
        const std::size_t entries = rows_.n_components * (rows_.n_features + 1);
        Change* const partial = partial_.data() + (member * entries + entry) % 2 * n_blocks_;
        for_blocks(rank, [&](std::size_t block, std::size_t begin, std::size_t end) {
            partial[block] = kernel_.attempt(rows_, member, accepted, step, begin, end);
        });
        barrier.meet();
        Change total = {0, 0, 0};
        for (std::size_t block = 0; block < n_blocks_; ++block) add(total, partial[block]);
        if (rank == 0) slow_row_trials_ += total.slow_rows;
        return total;
    }

    static void add(Change& total, const Change& part) {
        total.plus += part.plus;
        total.minus += part.minus;
        total.slow_rows += part.slow_rows;
    }

    const Kernel<Real>& kernel_;
    std::vector<double> coefficients_;
    std::size_t n_rows_;  // with padding to full lanes
    std::size_t stride_, n_blocks_, n_threads_, n_groups_;
    double tolerance_;
    Real step_a_, step_b_;
    double exact_step_a_, exact_step_b_;
    bool has_row_weight_;
    Aligned<Real> arena_;  // every array of rows_ that is as long as a column
    Aligned<std::int32_t> group_;
    Aligned<Real> group_weight_;
    std::vector<Change> partial_;
    Rows<Real> rows_;
    std::int64_t row_trials_ = 0, slow_row_trials_ = 0;
};

}  // namespace

std::unique_ptr<Solver> make_solver(const Problem& problem, std::vector<double> coefficients,
                                    bool single_precision, std::size_t n_threads,
                                    const InstructionSet& set) {
    if (single_precision)
        return std::make_unique<TypedSolver<float>>(problem, std::move(coefficients), n_threads,
                                                    set.kernel<float>());
    return std::make_unique<TypedSolver<double>>(problem, std::move(coefficients), n_threads,
                                                 set.kernel<double>());
}

void member_values(const Table& x, std::size_t n_members, std::size_t n_components,
                   const double* coefficients, double floor, const InstructionSet& set,
                   double* values) {
    constexpr std::size_t kChunk = 256;
    const std::size_t stride = staggered_stride<double>(kChunk);
    const Kernel<double>& kernel = set.kernel<double>();
    const std::size_t per_member = n_components * (x.n_columns + 1);
    Aligned<double> columns((x.n_columns + 1) * stride), value(n_members * stride);
    Rows<double> rows = {};
    rows.stride = stride;
    rows.n_features = x.n_columns;
    rows.n_components = n_components;
    rows.n_members = n_members;
    rows.x = columns.get();
    rows.value = value.get();
    rows.floor = floor;
    for (std::size_t first = 0; first < x.n_rows; first += kChunk) {
        const std::size_t n_rows = std::min(kChunk, x.n_rows - first);
        pack(x, nullptr, first, n_rows, kChunk, stride, columns.get());
        for (std::size_t member = 0; member < n_members; ++member) {
            kernel.evaluate(rows, member, coefficients + member * per_member, 0,
                            round_up(n_rows, kLanes<double>));
            for (std::size_t i = 0; i < n_rows; ++i)
                values[(first + i) * n_members + member] = value[member * stride + i];
        }
    }
}

}  // namespace qms22
