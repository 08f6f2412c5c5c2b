// Recorded labels that may lie → the most likely true ones, and the states they led to.
#pragma once

#include <span>
#include <vector>

#include "hidden_model.hpp"
#include "samples.hpp"

namespace resolvent {

struct LikelyPath {
  std::vector<Id> label;  // by row, none where no label is recorded
  std::vector<Id> state;  // by row: in which it is answered
};

// For each trace the labels and states that are the most likely together. `cells` are those of the
// rows, and `model` one whose moves lead to one state each.
LikelyPath likely_path(const HiddenKind& kind, const HiddenModel& model, std::span<const Id> cells,
                       const Labels& labels);

}  // namespace resolvent
