// Viterbi paths: the most likely true labels and states, given noisy recorded labels.
#pragma once

#include <span>
#include <vector>

#include "latent_model.hpp"
#include "samples.hpp"

namespace resolvent {

struct ViterbiPath {
  std::vector<Id> label;  // by row, none if no label is recorded
  std::vector<Id> state;  // by row, after its label
};

// The jointly most likely labels and states of each trace. `cells` are those of the rows; the transitions
// of `model` must be deterministic.
ViterbiPath viterbi_path(const LatentKind& kind, const LatentModel& model, std::span<const Id> cells,
                         const Labels& labels);

}  // namespace resolvent
