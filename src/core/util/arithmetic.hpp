// Elementary functions and matrix products that are the same to the last bit on every machine.
//
// C libraries differ in the last bit of logarithms, which can change a search that compares sums of them;
// linear algebra libraries add in an order that depends on the processor. These functions use only +, −, ×
// and ÷, which IEEE 754 defines exactly. tests/_util/test_math.py compares them to tables of known values:
// log and exp are precise to less than one unit in the last place.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace resolvent {

// Natural logarithm; −∞ of 0, and not a number below.
double natural_log(double x);

// ln(1 + x), for x above −1.
double log_one_plus(double x);

// The logarithm to base 2, exact for powers of two.
double binary_log(double x);

// e to the power of x.
double exponential(double x);

// base to the power of exponent, for a positive base.
double power(double base, double exponent);

// ln Γ(x), for x above 0.
double log_gamma(double x);

// Matrix product of tables stored by rows; `inner` is the length of a row of `left`. Each sum is added from
// the first to the last summand.
std::vector<double> product(std::span<const double> left, std::span<const double> right, std::size_t inner);

}  // namespace resolvent
