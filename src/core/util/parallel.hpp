// Work in several threads, one of them the caller's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

namespace resolvent {

// Joins its threads on destruction, as std::jthread, which not all libraries have.
struct JoinedThreads {
  std::vector<std::thread> threads;
  ~JoinedThreads() {
    for (auto& thread : threads) thread.join();
  }
};

// Number of parts to split a number of small steps into: starting a thread costs as much as thousands of
// steps.
inline std::size_t worth_while(std::size_t steps, unsigned threads) {
  constexpr std::size_t enough = 16384;
  return std::max<std::size_t>(1, std::min<std::size_t>(threads, steps / enough));
}

// Call work(0) … work(parts - 1) in parallel; rethrow the first exception.
template <typename Work>
void in_parallel(std::size_t parts, Work work) {
  std::vector<std::exception_ptr> failures(parts);
  const auto guarded = [&](std::size_t part) {
    try {
      work(part);
    } catch (...) {
      failures[part] = std::current_exception();
    }
  };
  {
    JoinedThreads others;
    for (std::size_t part = 1; part < parts; ++part) others.threads.emplace_back(guarded, part);
    if (parts > 0) guarded(0);
  }
  for (const auto& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

}  // namespace resolvent
