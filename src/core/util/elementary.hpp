// Logarithms and their kin, the same to the last bit on every machine.
//
// Those of C libraries differ in the last bit, and a search that compares two sums of them can
// so take another way. These use nothing but +, −, × and ÷, which IEEE 754 defines to the last bit.
// tests/arithmetic holds them to tables of known values: log and exp are off by less than one unit
// in the last place.
#pragma once

namespace resolvent {

// The natural logarithm; −∞ of 0, and not a number of what is negative.
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

}  // namespace resolvent
