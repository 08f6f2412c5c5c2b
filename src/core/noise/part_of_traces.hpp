// Some of many traces, the same whatever order they come in.
#pragma once

#include <cstdint>
#include <vector>

#include "samples.hpp"

namespace resolvent {

struct TracePart {
  std::vector<Id> alpha;
  std::vector<Id> output;
  std::vector<Id> beta;
  std::vector<Row> offsets{0};

  [[nodiscard]] Answers answers() const { return {alpha, output}; }
  [[nodiscard]] Labels labels() const { return {beta, offsets}; }
};

// Whole traces that have about so many rows together; of a longer trace only the beginning.
TracePart part_of_traces(const Answers& answers, const Labels& labels, Row rows, std::uint64_t seed);

}  // namespace resolvent
