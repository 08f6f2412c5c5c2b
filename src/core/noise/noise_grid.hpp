// Noise is fitted on grids of strengths and shares, each some times the one before.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>

#include "elementary.hpp"

namespace resolvent {

// The place on a grid that differs from a value by the smallest factor.
template <std::size_t Size>
std::size_t nearest(const std::array<double, Size>& grid, double value) {
  std::size_t best = 0;
  for (std::size_t at = 1; at < Size; ++at)
    if (std::abs(natural_log(grid[at] / value)) < std::abs(natural_log(grid[best] / value))) best = at;
  return best;
}

}  // namespace resolvent
