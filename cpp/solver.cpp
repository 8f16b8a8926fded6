#include "solver.hpp"

#include <algorithm>
#include <utility>

#include "bundles.hpp"
#include "team.hpp"

namespace qms22 {
namespace {

template <class Real>
class TypedSolver final : public Solver {
  public:
    TypedSolver(const Task& task, std::vector<double> coefficients, std::size_t n_threads,
                const Kernel<Real>& kernel)
        : kernel_(kernel),
          coefficients_(std::move(coefficients)),
          packed_(task),
          bundles_(packed_),
          rows_(bundles_.rows()),
          n_threads_(std::max<std::size_t>(1, std::min(n_threads, packed_.n_blocks()))),
          tolerance_(task.tolerance),
          step_a_(Real(task.step_a)),
          step_b_(Real(task.step_b)),
          exact_step_a_(task.step_a),
          exact_step_b_(task.step_b),
          partial_(2 * packed_.n_blocks() * kMaxBundle) {
        run_team(n_threads_, [&](std::size_t rank, std::size_t n_threads) {
            std::vector<Real> own;
            for (std::size_t member = 0; member < rows_.n_members; ++member) {
                packed_.load_member(coefficients_, member, own);
                packed_.for_blocks(rank, n_threads,
                                   [&](std::size_t, std::size_t begin, std::size_t end) {
                                       kernel_.evaluate(rows_, member, own.data(), begin, end);
                                   });
            }
        });
    }

    SweepResult sweep() override {
        Barrier barrier;
        // Every thread computes the same decisions from the same sums; the first one stores them.
        // They get their memory in advance: the others would wait for a thread that found none.
        Copy copy = {coefficients_, {}};
        packed_.load_member(coefficients_, 0, copy.of_member);
        std::vector<Copy> copies(n_threads_, copy);
        SweepResult result = {0, 0};
        run_team(n_threads_, [&](std::size_t rank, std::size_t n_threads) {
            const SweepResult mine = sweep_as({rank, n_threads, barrier}, copies[rank]);
            if (rank == 0) result = mine;
        });
        coefficients_ = std::move(copies[0].all);
        row_trials_ += std::int64_t(packed_.n_rows() * coefficients_.size());
        return result;
    }

    const std::vector<double>& coefficients() const override { return coefficients_; }
    std::int64_t row_trials() const override { return row_trials_; }
    std::int64_t slow_row_trials() const override { return slow_row_trials_; }

  private:
    // A thread of the team that makes a sweep.
    struct Place {
        std::size_t rank, n_threads;
        Barrier& barrier;
    };

    // A thread's coefficients of all members, and of one in the kernel's precision.
    struct Copy {
        std::vector<double> all;
        std::vector<Real> of_member;
    };

    template <class Work>
    void for_blocks(const Place& place, const Work& work) const {
        packed_.for_blocks(place.rank, place.n_threads, work);
    }

    SweepResult sweep_as(const Place& place, Copy& copy) {
        SweepResult result = {0, 0};
        for (std::size_t member = 0; member < rows_.n_members; ++member) {
            packed_.load_member(copy.all, member, copy.of_member);
            for_blocks(place, [&](std::size_t, std::size_t begin, std::size_t end) {
                kernel_.enter(rows_, member, copy.of_member.data(), begin, end);
            });
            double* const entries = copy.all.data() + member * (copy.all.size() / rows_.n_members);
            const SweepResult visit = visit_entries(place, member, entries);
            packed_.load_member(copy.all, member, copy.of_member);
            for_blocks(place, [&](std::size_t, std::size_t begin, std::size_t end) {
                kernel_.evaluate(rows_, member, copy.of_member.data(), begin, end);
            });
            result.change += visit.change;
            result.accepted += visit.accepted;
        }
        return result;
    }

    // Tries every entry (q, p + 1) of the member once, row by row, b's entry last in its row.
    SweepResult visit_entries(const Place& place, std::size_t member, double* entries) {
        SweepResult result = {0, 0};
        Change changes[kMaxBundle];
        Real taken[kLanes<Real>] = {};
        Step<Real> before;
        const Step<Real>* accepted = nullptr;
        for (std::size_t r = 0; r < rows_.n_components; ++r) {
            // The sum of columns to which the kept changes of rows belong.
            const Real* kept = nullptr;
            for (const Bundle<Real>& bundle : bundles_.all()) {
                const bool is_b = bundle.first == rows_.n_features;
                const Step<Real> step = {r,
                                         bundle.x,
                                         is_b ? step_b_ : step_a_,
                                         bundle.size > 1 ? &bundle : nullptr,
                                         taken,
                                         kept == bundle.x && !accepted};
                attempt(place, member, accepted, step, bundle, changes);
                // Slow rows update their slack, which may change how the next trial computes them.
                if (changes[0].slow_rows || (accepted && !step.bundle))
                    kept = nullptr;
                else if (step.bundle)
                    kept = bundle.x;
                accepted = nullptr;
                for (std::size_t k = 0; k < bundle.size; ++k) {
                    const bool plus = changes[k].plus < -tolerance_;
                    const bool minus = !plus && changes[k].minus < -tolerance_;
                    taken[k] = plus ? step.size : minus ? -step.size : 0;
                    if (!plus && !minus) continue;
                    const double exact_step = is_b ? exact_step_b_ : exact_step_a_;
                    entries[r * (rows_.n_features + 1) + bundle.first + k] +=
                        plus ? exact_step : -exact_step;
                    result.change += plus ? changes[k].plus : changes[k].minus;
                    result.accepted += 1;
                    before = step;
                    before.size = taken[k];
                    accepted = &before;
                }
            }
        }
        return result;
    }

    // Trials on the columns of a bundle over all rows. The partial sums are double-buffered: a
    // thread is at most one bundle ahead of the slowest reader, so one barrier per bundle is
    // enough.
    void attempt(const Place& place, std::size_t member, const Step<Real>* accepted,
                 const Step<Real>& step, const Bundle<Real>& bundle, Change* totals) {
        const std::size_t index = std::size_t(&bundle - bundles_.all().data());
        const std::size_t pass =
            (member * rows_.n_components + step.component) * bundles_.all().size() + index;
        Change* const partial = partial_.data() + pass % 2 * packed_.n_blocks() * kMaxBundle;
        for_blocks(place, [&](std::size_t block, std::size_t begin, std::size_t end) {
            kernel_.attempt(rows_, member, accepted, step, begin, end,
                            partial + block * bundle.size);
        });
        if (place.n_threads > 1) place.barrier.meet(place.n_threads);
        for (std::size_t k = 0; k < bundle.size; ++k) {
            totals[k] = {0, 0, 0};
            for (std::size_t block = 0; block < packed_.n_blocks(); ++block)
                add(totals[k], partial[block * bundle.size + k]);
            if (place.rank == 0) slow_row_trials_ += totals[k].slow_rows;
        }
    }

    static void add(Change& total, const Change& part) {
        total.plus += part.plus;
        total.minus += part.minus;
        total.slow_rows += part.slow_rows;
    }

    const Kernel<Real>& kernel_;
    std::vector<double> coefficients_;
    PackedRows<Real> packed_;
    Bundles<Real> bundles_;
    const KernelRows<Real>& rows_;
    std::size_t n_threads_;
    double tolerance_;
    Real step_a_, step_b_;
    double exact_step_a_, exact_step_b_;
    std::vector<Change> partial_;
    std::int64_t row_trials_ = 0, slow_row_trials_ = 0;
};

}  // namespace

std::unique_ptr<Solver> make_solver(const Task& task, std::vector<double> coefficients,
                                    bool single_precision, std::size_t n_threads,
                                    const InstructionSet& set) {
    if (single_precision)
        return std::make_unique<TypedSolver<float>>(task, std::move(coefficients), n_threads,
                                                    set.kernel<float>());
    return std::make_unique<TypedSolver<double>>(task, std::move(coefficients), n_threads,
                                                 set.kernel<double>());
}

void member_values(const StridedTable& x, std::size_t n_members, std::size_t n_components,
                   const double* coefficients, double floor, const InstructionSet& set,
                   double* values) {
    constexpr std::size_t kChunk = 256;
    const std::size_t stride = staggered_stride<double>(kChunk);
    const Kernel<double>& kernel = set.kernel<double>();
    const std::size_t per_member = n_components * (x.n_columns + 1);
    Aligned<double> columns(x.n_columns + 1, stride), value(n_members, stride);
    KernelRows<double> rows = {};
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
