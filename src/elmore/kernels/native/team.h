// Threads that share the work of one sentence.
//
// A single sentence reads all weights at every step, so speed depends on how much of them the
// caches hold. With one thread per direction, both directions' weights compete for the caches. A
// team works on one direction after the other, each member on its own part of the outputs.
#pragma once

#include <immintrin.h>

#include <atomic>
#include <exception>
#include <thread>
#include <vector>

namespace elmore {

class Team {
 public:
  int size() const { return size_; }

  // Calls `work(member)` for all members in parallel, the first in this thread. If the system
  // starts fewer threads, the team is smaller.
  template <class Work>
  void run(int requested_size, Work work) {
    std::vector<std::thread> others;
    others.reserve(requested_size);
    try {
      for (int member = 1; member < requested_size; ++member)
        others.emplace_back([this, work, member] {
          while (!has_started_.load(std::memory_order_acquire)) std::this_thread::yield();
          work(member);
        });
    } catch (const std::exception&) {
    }
    size_ = (int)others.size() + 1;
    has_started_.store(true, std::memory_order_release);
    work(0);
    for (std::thread& other : others) other.join();
  }

  // A barrier: returns when all members have called it. Waits are short, so it spins first, then
  // yields, so that a member that lost its core to another program gets it back.
  void meet() {
    if (size_ == 1) return;
    const int round = round_.load(std::memory_order_acquire);
    if (num_arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
      num_arrived_.store(0, std::memory_order_relaxed);
      round_.store(round + 1, std::memory_order_release);
      return;
    }
    for (int spins = 0; round_.load(std::memory_order_acquire) == round; ++spins) {
      if (spins < 2000)
        _mm_pause();
      else
        std::this_thread::yield();
    }
  }

 private:
  int size_ = 1;
  std::atomic<bool> has_started_{false};
  std::atomic<int> num_arrived_{0};
  std::atomic<int> round_{0};
};

}  // namespace elmore
