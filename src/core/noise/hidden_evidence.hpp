// A machine whose state is hidden, weighed: how likely answers are, which moves are read.
#pragma once

#include <cstddef>
#include <vector>

#include "hidden_model.hpp"

namespace resolvent {

// What was expected to happen less often than this did not happen.
inline constexpr double half_read = 0.5;

// Where a label leads most likely.
Id target(const HiddenModel& model, std::size_t label, std::size_t state);

// How often a label was read in a state.
double made(const HiddenCounts& counts, std::size_t states, std::size_t label, std::size_t state);

// The states that are reached, starts first, then in the order in which labels lead to them.
std::vector<Id> reached(const HiddenRows& rows, const HiddenModel& model, const HiddenCounts& counts);

// ln of how likely all answers are if every move leads to one state: their likelihood under the
// parameters that were found, and in place of these the sum over all that there are, taken as if
// what is hidden were known to be as expected (Cheeseman and Stutz); and of the moves.
double log_evidence(const HiddenRows& rows, const HiddenModel& model, const HiddenCounts& counts);

}  // namespace resolvent
