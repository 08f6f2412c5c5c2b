// A machine made from the tree of label histories, by merging its nodes: finds memory of many
// states that is of no use before all of them are there, as splitting does not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "log_evidence.hpp"
#include "pulse.hpp"
#include "table_replay.hpp"

namespace resolvent {

// Red nodes are states; blue ones hang below them and are to be merged into a state, or to become
// one. The answers of a merged node are weighed as in table_replay.hpp.
class TreeMerging {
 public:
  // The tree must outlive it.
  TreeMerging(const NoisyTree& tree, const NoiseShape& noise, Pulse& pulse);

  // The table in which every node of the tree is in a state, or nothing if that would take more
  // than `most_states` states or `most_work` merged nodes.
  std::optional<Moves> run(Id most_states, std::int64_t most_work);

 private:
  struct Count {
    Id cell;
    Id times;
  };
  using Row = std::vector<Count>;
  using Children = std::vector<std::pair<Id, Id>>;  // label, node

  // What two rows gain if they are one. `into` then holds both.
  double pour(Row& into, const Row& from) const;
  [[nodiscard]] double worth(const Count* first, const Count* last) const;
  // What it gains to merge the tree below a blue node into a red one; with `undo` nothing changes.
  double fold(Id red, Id parent, Id label, bool undo);
  Id& child(Id node, Id label);
  void keep(Id node);

  struct Kept {
    Id node;
    Row row;
    Children children;
  };

  const NoisyTree& tree_;
  SearchScore score_;
  Pulse& pulse_;
  std::vector<Row> rows_;          // by node
  std::vector<Children> children_;  // by node, by label
  std::vector<Kept> kept_;          // what a fold changed
  std::vector<std::int64_t> kept_at_;
  std::int64_t folds_ = 0;
  std::int64_t work_ = 0;
};

}  // namespace resolvent
