// Threads that run one function at the same time, and a barrier for them.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace qms22 {

// Threads meet once per trial, every few microseconds to milliseconds: spin first, then yield.
class Barrier {
  public:
    // Waits until as many threads have called this.
    void meet(std::size_t n_threads) {
        const std::size_t round = round_.load(std::memory_order_relaxed);
        if (waiting_.fetch_add(1, std::memory_order_acq_rel) + 1 == n_threads) {
            waiting_.store(0, std::memory_order_relaxed);
            round_.store(round + 1, std::memory_order_release);
            return;
        }
        for (int spins = 0; round_.load(std::memory_order_acquire) == round;)
            if (++spins > kMostSpins) {
                spins = kMostSpins;
                std::this_thread::yield();
            }
    }

  private:
    static constexpr int kMostSpins = 4096;
    alignas(64) std::atomic<std::size_t> waiting_{0};
    alignas(64) std::atomic<std::size_t> round_{0};
};

// Runs work(rank, n) for all ranks below n at the same time and waits for all of them. n is
// n_threads, or less if the system starts no more threads. Throws the first error again; work that
// meets others at a barrier must not fail, as they would wait for it.
template <class Work>
void run_team(std::size_t n_threads, const Work& work) {
    std::mutex mutex;
    std::exception_ptr error;
    std::atomic<std::size_t> size{0};  // 0 until all threads have started
    const auto run = [&](std::size_t rank) {
        try {
            work(rank, size.load(std::memory_order_relaxed));
        } catch (...) {
            const std::scoped_lock lock(mutex);
            if (!error) error = std::current_exception();
        }
    };
    std::vector<std::thread> others;
    try {
        others.reserve(n_threads - 1);
        for (std::size_t rank = 1; rank < n_threads; ++rank)
            others.emplace_back([&run, &size, rank] {
                while (size.load(std::memory_order_acquire) == 0) std::this_thread::yield();
                run(rank);
            });
    } catch (const std::exception&) {  // no memory for a thread, or too many of them
        n_threads = others.size() + 1;
    }
    size.store(n_threads, std::memory_order_release);
    run(0);
    for (std::thread& other : others) other.join();
    if (error) std::rethrow_exception(error);
}

}  // namespace qms22
