// Log evidence of machines with latent states.
#pragma once

#include <cstddef>
#include <vector>

#include "latent_model.hpp"

namespace resolvent {

// Events with an expected count below this are taken as not observed.
inline constexpr double half_read = 0.5;

// Most likely target of a transition.
Id target(const LatentModel& model, std::size_t label, std::size_t state);

// Expected number of times a label was read in a state.
double times_read(const LatentCounts& counts, std::size_t states, std::size_t label, std::size_t state);

// Reached states: initial states first, then in the order in which labels reach them.
std::vector<Id> reached(const LatentRows& rows, const LatentModel& model, const LatentCounts& counts);

// Log evidence of the outputs and of deterministic transitions. The likelihood under the fitted parameters
// is corrected by the marginal likelihood of the expected complete data (Cheeseman and Stutz).
double log_evidence(const LatentRows& rows, const LatentModel& model, const LatentCounts& counts);

}  // namespace resolvent
