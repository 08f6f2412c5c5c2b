// Single passes over columns of codes that would take several passes in NumPy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "samples.hpp"

namespace resolvent {

// For each alpha: its first output, its number of rows, and whether its outputs vary.
struct Tally {
  std::vector<Id> output;  // none if the alpha does not occur
  std::vector<Row> count;
  std::vector<std::uint8_t> varies;
};

// Every alpha must be in [0, `alphas`).
Tally tally_outputs(std::span<const Id> alpha, std::span<const Id> output, std::size_t alphas);

// Flags for the codes that occur. Every code must be in [0, `size`).
std::vector<std::uint8_t> used_codes(std::span<const Id> codes, std::size_t size);

// Distinct pairs, coded as `first * seconds + second`, in ascending order, and the position of each row's
// pair among them. Codes must be in range; the number of possible pairs must be below 2^31.
struct Pairs {
  std::vector<Id> distinct;
  std::vector<Id> position;
};
Pairs distinct_pairs(std::span<const Id> first, std::span<const Id> second, std::size_t firsts, std::size_t seconds);

// Distinct values in order of first occurrence: the row of the first occurrence, and the number of each
// row's value.
struct Numbered {
  std::vector<Row> first;
  std::vector<Id> number;
};
Numbered numbered(std::span<const Row> values);

// Write `table[code]` for each code; `none` stays `none`. Codes must be in the table.
void recode(std::span<const Id> codes, std::span<const Id> table, std::span<Id> out);

}  // namespace resolvent
