// The product of two tables, the same to the last bit on every machine.
//
// Libraries of linear algebra add up in an order that depends on the processor.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace resolvent {

// Tables lie row by row, and `inner` is the length of a row of `left`. Each sum is taken from the
// first summand to the last.
std::vector<double> product(std::span<const double> left, std::span<const double> right, std::size_t inner);

}  // namespace resolvent
