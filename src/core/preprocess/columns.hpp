// Passes over columns of codes that NumPy would make several of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "samples.hpp"

namespace resolvent {

// For every alpha: an output it had, how often it was seen, and whether it ever
// had another output.
struct Tally {
  std::vector<Id> output;  // none where the alpha never occurs
  std::vector<Row> count;
  std::vector<std::uint8_t> varies;
};

// Every alpha must be below `alphas` and not `none`.
Tally tally_outputs(std::span<const Id> alpha, std::span<const Id> output, std::size_t alphas);

// Which codes below `size` occur. Every code must be below it and not `none`.
std::vector<std::uint8_t> used_codes(std::span<const Id> codes, std::size_t size);

// The distinct pairs of codes, as `first * seconds + second` in rising order, and
// for each row the place of its pair among them. Codes must be below their bounds
// and not `none`; there must be fewer than 2^31 possible pairs.
struct Pairs {
  std::vector<Id> distinct;
  std::vector<Id> place;
};
Pairs distinct_pairs(std::span<const Id> first, std::span<const Id> second, std::size_t firsts, std::size_t seconds);

// The distinct values of a column in the order in which they come up: the row of each one's first,
// and for each row the number of its value among them.
struct Numbered {
  std::vector<Row> first;
  std::vector<Id> number;
};
Numbered numbered(std::span<const Row> values);

// Writes `table[code]` for each code; `none` stays `none`. Codes must be in the table.
void recode(std::span<const Id> codes, std::span<const Id> table, std::span<Id> out);

}  // namespace resolvent
