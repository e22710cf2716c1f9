// Threads that share the work of one sentence.
//
// A single sentence reads all weights at every step, so what counts is how much of them the caches
// hold. Two threads with a direction each need both directions' weights there; a team works through
// one direction after the other, each member on its own part of the outputs.
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

  // Calls `work(member)` for every member at once, the first in this thread. A system that gives
  // fewer threads makes the team smaller.
  template <class Work>
  void run(int wanted_size, Work work) {
    std::vector<std::thread> others;
    others.reserve(wanted_size);
    try {
      for (int member = 1; member < wanted_size; ++member)
        others.emplace_back([this, work, member] {
          while (!has_begun_.load(std::memory_order_acquire)) std::this_thread::yield();
          work(member);
        });
    } catch (const std::exception&) {
    }
    size_ = (int)others.size() + 1;
    has_begun_.store(true, std::memory_order_release);
    work(0);
    for (std::thread& other : others) other.join();
  }

  // Returns when all members have come here. They are soon: a few are waited for by spinning, and
  // one that has lost its core to another program gets it back.
  void meet() {
    if (size_ == 1) return;
    const int turn = turn_.load(std::memory_order_acquire);
    if (num_here_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
      num_here_.store(0, std::memory_order_relaxed);
      turn_.store(turn + 1, std::memory_order_release);
      return;
    }
    for (int spins = 0; turn_.load(std::memory_order_acquire) == turn; ++spins) {
      if (spins < 2000)
        _mm_pause();
      else
        std::this_thread::yield();
    }
  }

 private:
  int size_ = 1;
  std::atomic<bool> has_begun_{false};
  std::atomic<int> num_here_{0};
  std::atomic<int> turn_{0};
};

}  // namespace elmore
