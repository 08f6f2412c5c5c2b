// What the learner is given: one row per answer, the rows of a trace one after
// another. A row says "read `beta`, then answer `alpha` with `output`"; either
// half may be absent (`none`).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace resolvent {

using Id = std::int32_t;
using Row = std::int64_t;

inline constexpr Id none = -1;

// An id as the place in an array that it stands for.
constexpr std::size_t index(Id id) { return static_cast<std::size_t>(id); }

struct Labels {
  std::span<const Id> beta;
  std::span<const Row> offsets;  // trace i owns rows offsets[i] .. offsets[i + 1]
};

struct Answers {
  std::span<const Id> alpha;
  std::span<const Id> output;
};

}  // namespace resolvent
