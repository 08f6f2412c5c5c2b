// Columns of a table, as they were read → codes, and where episodes begin.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "samples.hpp"

namespace resolvent {

// Where each episode begins, if rows stand in order: the episodes', which the columns of `episode`
// tell apart, rising, and within each those of `time`, if there are any, rising with every row.
// Columns must be equally long.
std::optional<std::vector<Row>> starts_in_order(std::span<const std::span<const Row>> episode,
                                                std::span<const std::span<const Row>> time, std::size_t rows);

// Writes for each row the place of its number among the distinct ones, and returns these, rising;
// nothing where the numbers lie so far apart that a table of `most` would not do.
std::optional<std::vector<Row>> distinct_integers(std::span<const Row> numbers, std::size_t most, std::span<Id> codes);

// Writes `table[code]` for each code, and `inserted` before each of the places in `at`, which must
// not fall and lie within. Codes must be in the table.
void recode_with_inserted(std::span<const Id> codes, std::span<const Id> table, std::span<const Row> at, Id inserted,
                          std::span<Id> out);

}  // namespace resolvent
