// Work in several threads, of which one is the caller's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

namespace resolvent {

// Waits for its threads where it ends. std::jthread does so too, but not all libraries have it.
struct Joined {
  std::vector<std::thread> threads;
  ~Joined() {
    for (auto& one : threads) one.join();
  }
};

// Into how many parts to cut so many small steps of work: a thread takes as long to begin as thousands.
inline std::size_t worth_while(std::size_t steps, unsigned threads) {
  constexpr std::size_t enough = 16384;
  return std::max<std::size_t>(1, std::min<std::size_t>(threads, steps / enough));
}

// Calls work(0) … work(parts - 1), each in a thread of its own; what one throws is thrown.
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
    Joined others;
    for (std::size_t part = 1; part < parts; ++part) others.threads.emplace_back(guarded, part);
    if (parts > 0) guarded(0);
  }
  for (const auto& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

}  // namespace resolvent
