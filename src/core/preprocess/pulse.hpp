// The line out of a long computation: now and then it reports how far it is,
// and whoever listens may stop it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

#include "samples.hpp"

namespace resolvent {

struct Progress {
  Id red = 0;               // states found so far
  Id blue = 0;              // states still to be decided
  std::int64_t settled = 0;  // tree nodes that belong to a found state
  std::int64_t nodes = 0;    // all tree nodes
};

// Thrown through the computation by `Pulse::beat`; what was computed is lost.
struct Interrupted {};
struct TooMuchWork {};
struct TimeLimitReached {
  Progress progress;
};

class Pulse {
 public:
  using Clock = std::chrono::steady_clock;
  // Returns false to interrupt. May throw; the exception passes through.
  using Listener = std::function<bool(const Progress&)>;

  // Limits of 0 are none. A limit of work is reached at the same point every time.
  Pulse(Listener listener, double time_limit_seconds, std::int64_t work_limit = 0)
      : listener_(std::move(listener)), started_(Clock::now()), limit_(time_limit_seconds), work_limit_(work_limit) {}

  Progress progress;

  // Call once per unit of work (tens of nanoseconds or so).
  void beat() {
    if (--until_look_ == 0) look();
  }

  // The units of work so far.
  [[nodiscard]] std::int64_t work() const { return looked_at_ + beats_between_looks - until_look_; }

 private:
  static constexpr int beats_between_looks = 1 << 14;
  static constexpr std::chrono::milliseconds between_calls{50};

  void look() {
    until_look_ = beats_between_looks;
    looked_at_ += beats_between_looks;
    if (work_limit_ > 0 && looked_at_ > work_limit_) throw TooMuchWork{};
    const auto now = Clock::now();
    if (limit_ > 0 && std::chrono::duration<double>(now - started_).count() > limit_)
      throw TimeLimitReached{progress};
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
  std::int64_t looked_at_ = 0;
  int until_look_ = beats_between_looks;
};

}  // namespace resolvent
