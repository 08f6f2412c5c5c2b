// Moves of one machine + all steps → where steps in the same state have different answers.
#pragma once

#include <cstdint>
#include <span>

#include "samples.hpp"

namespace resolvent {

// The steps of traces: the label read before each, what it asks, and what was answered.
struct AskedSteps {
  std::span<const Id> read;      // none where nothing is read
  std::span<const Row> offsets;  // where traces begin, and the end of the last
  std::span<const Id> question;  // below `questions`
  std::span<const Id> answer;
  std::size_t questions;
};

// The state of another machine at each step, below `states`; empty where there is none.
struct Beside {
  std::span<const Id> at;
  std::size_t states = 1;
};

struct Clashes {
  Row count = 0;       // steps with another answer than the first one in the same state
  Row lost = 0;        // steps at which it is in no state, since a label led nowhere
  Row bad = none;      // the first step that clashes
  Row witness = none;  // the step that it clashes with
};

// `transitions[state * labels + label]` is the next state, as in `walk_states`. With `any`, it
// stops at the first step that clashes. Codes must be in range.
Clashes find_clashes(std::span<const Id> transitions, Id labels, const AskedSteps& steps, const Beside& beside,
                     bool any);

}  // namespace resolvent
