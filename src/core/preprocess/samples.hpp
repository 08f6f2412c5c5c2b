// Samples as columns: one row per output, trace by trace. A row reads the label `beta`, then has `output`
// for the query `alpha`; either half may be absent (`none`).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace resolvent {

using Id = std::int32_t;
using Row = std::int64_t;

inline constexpr Id none = -1;

// Return an id as an array index.
constexpr std::size_t index(Id id) { return static_cast<std::size_t>(id); }

struct Labels {
  std::span<const Id> beta;
  std::span<const Row> offsets;  // trace i owns rows offsets[i] .. offsets[i + 1]
};

struct Outputs {
  std::span<const Id> alpha;
  std::span<const Id> output;
};

}  // namespace resolvent
