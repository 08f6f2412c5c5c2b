// Progress reports, interrupts and limits of long computations.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

#include "samples.hpp"

namespace resolvent {

struct Progress {
  Id red = 0;                // states so far
  Id blue = 0;               // undecided states
  std::int64_t settled = 0;  // tree nodes that belong to a state
  std::int64_t nodes = 0;    // all tree nodes
};

// Thrown by `Watch::tick`; the computation is lost.
struct Interrupted {};
struct WorkLimitReached {};
struct TimeLimitReached {
  Progress progress;
};

class Watch {
 public:
  using Clock = std::chrono::steady_clock;
  // Return false to interrupt. Exceptions pass through.
  using Listener = std::function<bool(const Progress&)>;

  // A limit of 0 is none. A work limit is reached at the same point in every run.
  Watch(Listener listener, double time_limit_seconds, std::int64_t work_limit = 0)
      : listener_(std::move(listener)), started_(Clock::now()), limit_(time_limit_seconds), work_limit_(work_limit) {}

  Progress progress;

  // Call once per unit of work (some tens of nanoseconds).
  void tick() {
    if (--until_check_ == 0) check();
  }

  // Units of work so far.
  [[nodiscard]] std::int64_t work() const { return checked_ + ticks_between_checks - until_check_; }

 private:
  static constexpr int ticks_between_checks = 1 << 14;
  static constexpr std::chrono::milliseconds between_calls{50};

  void check() {
    until_check_ = ticks_between_checks;
    checked_ += ticks_between_checks;
    if (work_limit_ > 0 && checked_ > work_limit_) throw WorkLimitReached{};
    const auto now = Clock::now();
    if (limit_ > 0 && std::chrono::duration<double>(now - started_).count() > limit_) throw TimeLimitReached{progress};
    if (listener_ && now - last_call_ >= between_calls) {
      last_call_ = now;
      if (!listener_(progress)) throw Interrupted{};
    }
  }

  Listener listener_;
  Clock::time_point started_;
  Clock::time_point last_call_ = Clock::now();
  double limit_;
  std::int64_t work_limit_;
  std::int64_t checked_ = 0;
  int until_check_ = ticks_between_checks;
};

}  // namespace resolvent
