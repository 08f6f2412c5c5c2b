// The keys of traces, in order → two numbers that can be put together with those of other traces.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "samples.hpp"

namespace resolvent {

// The polynomials whose coefficients are the keys, and the keys mixed anew, modulo 2^61 − 1: each
// is ((key · base + key) · base + key) …, so that polynomials of parts can be put together.
std::pair<std::uint64_t, std::uint64_t> key_residues(std::span<const Row> keys, std::uint64_t base,
                                                     std::uint64_t other_base);

}  // namespace resolvent
