// Changes of latent-state models: add a state, remove a state, duplicate all states.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "latent_model.hpp"
#include "log_evidence.hpp"

namespace resolvent {

LatentModel one_state(const LatentRows& rows);

// Start from a machine, with leaking transitions and the output counts of the recorded labels.
LatentModel initial_model(const LatentRows& rows, const Transitions& from);

// Make every transition deterministic, to its most likely target.
void round_transitions(const LatentRows& rows, LatentModel& model);

// Let deterministic transitions leak again, so that expectation maximization can change them.
LatentModel softened(const LatentRows& rows, LatentModel model);

// Return the model restricted to some states. Transitions with no target left become loops.
LatentModel of_states(const LatentRows& rows, const LatentModel& model, const std::vector<Id>& states_kept);

// Join two states.
LatentModel joined(const LatentRows& rows, const LatentModel& model, const LatentCounts& counts, std::size_t first,
                   std::size_t second);

// Pairs of states, ordered by the log-likelihood lost if their outputs are pooled.
std::vector<std::pair<std::size_t, std::size_t>> similar_pairs(const LatentRows& rows, const LatentModel& model,
                                                               const LatentCounts& counts);

// Add a state: a copy of `next`, which `label` leads to from `state`.
LatentModel split(const LatentRows& rows, const LatentModel& model, std::size_t label, std::size_t state,
                  std::size_t next);

// Duplicate the machine: an episode begins in either copy, and an event stays in the copy with probability
// `stay_probability`.
LatentModel doubled(const LatentRows& rows, const LatentModel& model, double stay_probability, std::uint64_t seed);

}  // namespace resolvent
