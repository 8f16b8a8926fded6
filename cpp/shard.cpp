#include "shard.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "team.hpp"

namespace qms22 {
namespace {

template <class Real>
class TypedShard final : public Shard {
  public:
    TypedShard(const Task& task, std::size_t n_threads, const Kernel<Real>& kernel)
        : kernel_(kernel),
          packed_(task),
          rows_(packed_.view()),
          n_threads_(std::max<std::size_t>(1, std::min(n_threads, packed_.n_blocks()))),
          width_(rows_.n_features + 1),
          step_a_(task.step_a),
          step_b_(task.step_b) {}

    void restart(std::vector<double> coefficients) override {
        coefficients_ = std::move(coefficients);
        for (std::size_t member = 0; member < rows_.n_members; ++member) evaluate(member);
        member_ = rows_.n_members;
    }

    std::vector<Change> visit(std::size_t member, const std::vector<Decision>& settled,
                              const std::vector<Decision>& presumed) override {
        check(member, settled, presumed);
        if (member_ < rows_.n_members)
            for (std::size_t t = 0; t < settled.size(); ++t) keep(confirmed_ + t, settled[t]);
        if (member != member_) {
            if (member_ < rows_.n_members) evaluate(member_);
            enter(member);
            return attempt({}, presumed, 0, {});
        }
        // If the speculation was wrong, roll back to the last confirmed trial and replay the
        // settled trials since then: trials update the slack of rows, so skipping them would change
        // bits.
        const bool was_right = settled.size() == presumed_.size() + 1 &&
                               std::equal(presumed_.begin(), presumed_.end(), settled.begin());
        return attempt(settled, presumed, was_right ? settled.size() : 1,
                       was_right ? std::vector<Real*>() : changed_by(confirmed_, presumed_.size()));
    }

    std::size_t n_blocks() const override { return packed_.n_blocks(); }
    std::array<std::size_t, 3> shape() const override {
        return {rows_.n_members, rows_.n_components, rows_.n_features};
    }

  private:
    std::size_t n_entries() const { return rows_.n_components * width_; }

    void check(std::size_t member, const std::vector<Decision>& settled,
               const std::vector<Decision>& presumed) const {
        const bool is_new = member != member_, is_first = member_ == rows_.n_members;
        const std::size_t next = is_new ? 0 : confirmed_ + settled.size();
        const std::size_t n_tried = is_first ? 0 : presumed_.size() + 1;
        if (coefficients_.empty() || member >= rows_.n_members || settled.size() > n_tried ||
            (settled.empty() && !is_new) || next + presumed.size() >= n_entries())
            throw std::invalid_argument("a visit has to go on where the one before ended");
    }

    double exact_step(std::size_t entry) const {
        return entry % width_ == rows_.n_features ? step_b_ : step_a_;
    }

    Step<Real> step_on(std::size_t entry, Decision direction) const {
        const Real size = Real(exact_step(entry));
        return {entry / width_,
                rows_.x + entry % width_ * rows_.stride,
                direction < 0 ? -size : size,
                nullptr,
                nullptr,
                false};
    }

    // Applies a settled decision to the coefficients.
    void keep(std::size_t entry, Decision decision) {
        const double step = exact_step(entry);
        if (decision) coefficients_[member_ * n_entries() + entry] += decision > 0 ? step : -step;
    }

    template <class Work>
    void for_blocks(const Work& work) const {
        run_team(n_threads_, [&](std::size_t rank, std::size_t n_threads) {
            packed_.for_blocks(rank, n_threads, work);
        });
    }

    void evaluate(std::size_t member) {
        std::vector<Real> own;
        packed_.load_member(coefficients_, member, own);
        for_blocks([&](std::size_t, std::size_t begin, std::size_t end) {
            kernel_.evaluate(rows_, member, own.data(), begin, end);
        });
    }

    void enter(std::size_t member) {
        std::vector<Real> own;
        packed_.load_member(coefficients_, member, own);
        for_blocks([&](std::size_t, std::size_t begin, std::size_t end) {
            kernel_.enter(rows_, member, own.data(), begin, end);
        });
        member_ = member;
        confirmed_ = 0;
    }

    // Makes the trials after `settled`, presuming decisions for all but the first, and starts with
    // trial `from`, counted from confirmed_; trials before the first new one are replayed for their
    // effect on the state. Block by block: a block stays in cache over all its trials.
    std::vector<Change> attempt(const std::vector<Decision>& settled,
                                const std::vector<Decision>& presumed, std::size_t from,
                                const std::vector<Real*>& to_restore) {
        std::vector<Decision> decisions = settled;
        decisions.insert(decisions.end(), presumed.begin(), presumed.end());
        const std::size_t first_new = settled.size();
        const std::vector<Real*> to_save = changed_by(confirmed_ + first_new, presumed.size());
        if (saved_.size() < to_save.size()) saved_.resize(to_save.size());
        for (std::size_t i = 0; i < to_save.size(); ++i) saved_[i].resize(packed_.n_rows());
        std::vector<Change> changes((presumed.size() + 1) * packed_.n_blocks());
        for_blocks([&](std::size_t block, std::size_t begin, std::size_t end) {
            for (std::size_t i = 0; i < to_restore.size(); ++i)
                std::copy_n(saved_[i].data() + begin, end - begin, to_restore[i] + begin);
            for (std::size_t t = from; t <= decisions.size(); ++t) {
                const std::size_t entry = confirmed_ + t;
                const Decision before = t ? decisions[t - 1] : Decision(0);
                const Step<Real> accepted = before ? step_on(entry - 1, before) : Step<Real>{};
                Change change;
                kernel_.attempt(rows_, member_, before ? &accepted : nullptr, step_on(entry, 1),
                                begin, end, &change);
                if (t >= first_new) changes[(t - first_new) * packed_.n_blocks() + block] = change;
                if (t == first_new)
                    for (std::size_t i = 0; i < to_save.size(); ++i)
                        std::copy(to_save[i] + begin, to_save[i] + end, saved_[i].data() + begin);
            }
        });
        confirmed_ += first_new;
        presumed_ = presumed;
        return changes;
    }

    // The arrays that n_presumed trials after `entry` may change.
    std::vector<Real*> changed_by(std::size_t entry, std::size_t n_presumed) const {
        if (!n_presumed) return {};
        std::vector<Real*> arrays = {rows_.value + member_ * rows_.stride, rows_.s1, rows_.s2,
                                     rows_.slack};
        for (std::size_t r = entry / width_; r <= (entry + n_presumed - 1) / width_; ++r)
            arrays.push_back(rows_.residual2 + r * rows_.stride);
        return arrays;
    }

    const Kernel<Real>& kernel_;
    PackedRows<Real> packed_;
    const KernelRows<Real>& rows_;
    std::size_t n_threads_, width_;
    double step_a_, step_b_;
    std::vector<double> coefficients_;        // with every settled decision
    std::size_t member_ = 0, confirmed_ = 0;  // the last confirmed trial
    std::vector<Decision> presumed_;          // decisions that the state presumes since then
    std::vector<std::vector<Real>> saved_;    // copies of what they may have changed, from before
};

}  // namespace

std::unique_ptr<Shard> make_shard(const Task& task, bool single_precision, std::size_t n_threads,
                                  const InstructionSet& set) {
    if (single_precision)
        return std::make_unique<TypedShard<float>>(task, n_threads, set.kernel<float>());
    return std::make_unique<TypedShard<double>>(task, n_threads, set.kernel<double>());
}

}  // namespace qms22
