// How certain the target of each transition is, given all other transitions.
#pragma once

#include <vector>

#include "log_evidence.hpp"
#include "output_cells.hpp"
#include "samples.hpp"

namespace resolvent {

// The most likely other target of a transition, and the log odds of the present target against it.
struct Alternative {
  Id target = none;  // none if the transition is never read, or no other target was compared
  double log_odds = 0.0;
};

// By transition: state * labels + label. All traces with a transition are read again with another target:
// the three that the outputs up to the next label support most, and the loop. Idle labels, which change no
// state, are compared only if they are rare. A transition that only the other target would read is assumed
// to be a loop.
std::vector<Alternative> transition_alternatives(const OutputCells& cells, const Labels& labels,
                                                 const Transitions& transitions, Id states, const NoiseShape& noise);

}  // namespace resolvent
