// Samples → for every alpha: an output it had, how often it was seen, and
// whether it ever had another output.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "samples.hpp"

namespace resolvent {

struct Tally {
  std::vector<Id> output;  // none where the alpha never occurs
  std::vector<Row> count;
  std::vector<std::uint8_t> varies;
};

// Every alpha must be below `alphas` and not `none`.
Tally tally_outputs(std::span<const Id> alpha, std::span<const Id> output, std::size_t alphas);

}  // namespace resolvent
