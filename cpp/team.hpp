// Threads that run one function at the same time, and a barrier for them.
#pragma once

#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace qms22 {

// Threads meet once per trial, every few microseconds to milliseconds: spin first, then yield.
class Barrier {
  public:
    explicit Barrier(std::size_t n_threads) : n_threads_(n_threads) {}

    void meet() {
        const std::size_t round = round_.load(std::memory_order_relaxed);
        if (waiting_.fetch_add(1, std::memory_order_acq_rel) + 1 == n_threads_) {
            waiting_.store(0, std::memory_order_relaxed);
            round_.store(round + 1, std::memory_order_release);
            return;
        }
        for (int spins = 0; round_.load(std::memory_order_acquire) == round; ++spins)
            if (spins > 4096) std::this_thread::yield();
    }

  private:
    const std::size_t n_threads_;
    alignas(64) std::atomic<std::size_t> waiting_{0};
    alignas(64) std::atomic<std::size_t> round_{0};
};

// Runs work(0), ..., work(n_threads - 1) at the same time and waits for all of them. If the system
// cannot start so many threads, none of them runs and the error is thrown again.
template <class Work>
void run_team(std::size_t n_threads, const Work& work) {
    enum { kWait, kGo, kCancel };
    std::atomic<int> gate{kWait};
    std::vector<std::thread> others;
    const auto join = [&](int order) {
        gate.store(order, std::memory_order_release);
        if (order == kGo) work(0);
        for (std::thread& other : others) other.join();
    };
    try {
        for (std::size_t rank = 1; rank < n_threads; ++rank)
            others.emplace_back([&work, &gate, rank] {
                while (gate.load(std::memory_order_acquire) == kWait) std::this_thread::yield();
                if (gate.load(std::memory_order_acquire) == kGo) work(rank);
            });
    } catch (...) {
        join(kCancel);
        throw;
    }
    join(kGo);
}

}  // namespace qms22
