// How often hidden states moved, and what was answered in them, given tables of how likely that is.
#pragma once

#include <span>

#include "samples.hpp"

namespace resolvent {

// What was read and answered, step by step; trace i owns steps offsets[i] to offsets[i + 1].
// A step reads a source, which may move the state, and then gives an answer in the new state.
// Either is `none` where nothing is read, or the answer says nothing.
struct Steps {
  std::span<const Id> source;
  std::span<const Id> answer;
  std::span<const Row> offsets;
};

// For `states` hidden states: moves[(source * states + before) * states + after], and
// answers[answer * states + state].
template <typename Number>
struct HiddenTables {
  std::span<Number> moves;
  std::span<Number> answers;
};

// The most states that the tables may be made for.
inline constexpr Id most_hidden_states = 32;

// Adds the expected number of times that each move was made and each answer given to `counts`.
// Every trace begins in state 0. Returns the logarithm of how likely all answers are. It is the
// same on any number of processors.
double expect_moves(const Steps& steps, Id states, HiddenTables<const float> likely, HiddenTables<double> counts);

}  // namespace resolvent
