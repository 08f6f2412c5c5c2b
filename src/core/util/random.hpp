// SplitMix64: random numbers that are the same on all platforms.
#pragma once

#include <cstdint>

#include "samples.hpp"

namespace resolvent {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t mixed = state_ += 0x9E3779B97F4A7C15ULL;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9ULL;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBULL;
    return mixed ^ (mixed >> 31);
  }

  // Uniform in [0, 1), in steps of 2^-53.
  double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

  // Uniform in 0 .. bound - 1.
  Id below(Id bound) { return static_cast<Id>(((next() >> 32) * static_cast<std::uint64_t>(bound)) >> 32); }

 private:
  std::uint64_t state_;
};

}  // namespace resolvent
