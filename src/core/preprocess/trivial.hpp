// The samples after deletion of a label from all label sequences: outputs that agree, or a contradiction.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "prefix_tree.hpp"

namespace resolvent {

// A context is the label before the deleted one plus one, or 0 at the start. By context of the last
// deletion: `occurrences` counts the label sequences that end with the deleted label, and `bits` sums the
// information of agreeing outputs, log2(1/p) for an output with share p for its alpha. `agreements` counts
// the repeated outputs of each merged group for alphas whose outputs vary.
struct Deletion {
  Row agreements = 0;
  std::vector<double> bits;
  std::vector<Row> occurrences;
  std::optional<Contradiction> contradiction;  // if set, nothing else is filled in
};

// Delete each of the `named` labels on its own. `tree` must be built from `outputs`; all labels must be
// below `labels`.
std::vector<Deletion> delete_labels(const PrefixTree& tree, const Outputs& outputs, std::span<const Id> named,
                                    Id labels);

}  // namespace resolvent
