// What deleting a label from all histories brings together: answers that agree,
// or two that do not.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "prefix_tree.hpp"

namespace resolvent {

// A context is the label read last before the deleted one, plus one; 0 where
// none was. `occurrences` counts the histories that end with the deleted label,
// `bits` what agreements say, each under the context of the last deletion: an
// answer that a share p of the histories gives to its alpha says log2(1/p).
// `agreements` counts the histories, of each group that became one, that repeat
// an answer of the group to an alpha whose answer varies somewhere.
struct Deletion {
  Row agreements = 0;
  std::vector<double> bits;
  std::vector<Row> occurrences;
  std::optional<Contradiction> contradiction;  // then nothing else is filled in
};

// Deletes each of the labels named by itself. `tree` must be that of `answers`;
// every label in it, and every one named, must be below `labels`.
std::vector<Deletion> delete_labels(const PrefixTree& tree, const Answers& answers, std::span<const Id> named, Id labels);

}  // namespace resolvent
