// Models of hidden machines made of others: a state more, a state less, everything twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "hidden_model.hpp"
#include "log_evidence.hpp"

namespace resolvent {

HiddenModel one_state(const HiddenRows& rows);

// Moves that leak, and answers as they are if labels were recorded as they came.
HiddenModel begun(const HiddenRows& rows, const Moves& from);

// Lets every move lead to the likeliest state alone.
void round_moves(const HiddenRows& rows, HiddenModel& model);

// Moves that are sure leak a little again, so that expectation can change them.
HiddenModel softened(const HiddenRows& rows, HiddenModel model);

// The model of some states alone. Moves to others lead nowhere else than where they begin.
HiddenModel of_states(const HiddenRows& rows, const HiddenModel& model, const std::vector<Id>& kept);

// One state less: all that led to one leads to another.
HiddenModel joined(const HiddenRows& rows, const HiddenModel& model, const HiddenCounts& counts, std::size_t one,
                   std::size_t other);

// Pairs of states by how little is lost if their answers are those of one state.
std::vector<std::pair<std::size_t, std::size_t>> alike(const HiddenRows& rows, const HiddenModel& model,
                                                       const HiddenCounts& counts);

// One state more: a copy of `next`, which `label` leads to from `state`.
HiddenModel split(const HiddenRows& rows, const HiddenModel& model, std::size_t label, std::size_t state,
                  std::size_t next);

// The machine twice: an episode begins in either, and an event leads to the same one with the
// probability `kept`.
HiddenModel side_by_side(const HiddenRows& rows, const HiddenModel& model, double kept, std::uint64_t seed);

}  // namespace resolvent
