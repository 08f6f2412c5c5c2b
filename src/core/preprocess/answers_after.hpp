// Which answers states give: all of them, or those after a source has been read.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hidden_moves.hpp"

namespace resolvent {

// Counts the answers that each state gives, entry state * answers + answer, if sources lead from
// state to state as table[source * states + state] says. Every trace begins in state 0.
std::vector<std::int64_t> answers_told(const Steps& steps, std::span<const Id> table, Id states, Id answers);

// Counts the answers given in `state` after a source was read in it: entry source * answers + answer.
// `states` holds the state at each step, with all that was read taken in. A stay in the state begins
// when it is entered, which the reading that leads there is not part of, and ends when it is left.
// `sources` and `answers` say how many there are. Every trace begins in state 0.
std::vector<std::int64_t> answers_after(const Steps& steps, std::span<const Id> states, Id state, Id sources,
                                        Id answers);

}  // namespace resolvent
