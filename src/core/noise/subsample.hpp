// A subsample of traces that does not depend on their order.
#pragma once

#include <cstdint>
#include <vector>

#include "samples.hpp"

namespace resolvent {

struct Subsample {
  std::vector<Id> alpha;
  std::vector<Id> output;
  std::vector<Id> beta;
  std::vector<Row> offsets{0};

  [[nodiscard]] Outputs outputs() const { return {alpha, output}; }
  [[nodiscard]] Labels labels() const { return {beta, offsets}; }
};

// Take whole traces with about this number of rows together; a longer trace is truncated.
Subsample subsample_traces(const Outputs& outputs, const Labels& labels, Row rows, std::uint64_t seed);

}  // namespace resolvent
