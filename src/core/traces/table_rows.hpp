// Columns of a table → codes, and the first row of each episode.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "samples.hpp"

namespace resolvent {

// Return the first row of each episode if the rows are sorted: by the columns of `episode`, then strictly
// by those of `time`, if there are any. Columns must have the same length.
std::optional<std::vector<Row>> starts_in_order(std::span<const std::span<const Row>> episode,
                                                std::span<const std::span<const Row>> time, std::size_t rows);

// Write the position of each row's number among the distinct numbers, and return these in ascending order;
// nullopt if their range exceeds `most`.
std::optional<std::vector<Row>> distinct_integers(std::span<const Row> numbers, std::size_t most, std::span<Id> codes);

// Write `table[code]` for each code, and `inserted` before each position in `at`, which must be ascending
// and in range. Codes must be in the table.
void recode_with_inserted(std::span<const Id> codes, std::span<const Id> table, std::span<const Row> at, Id inserted,
                          std::span<Id> out);

}  // namespace resolvent
