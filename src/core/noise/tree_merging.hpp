// A machine by merging the nodes of the tree of label sequences. Unlike splitting, this finds memory that
// only helps once all its states exist.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "log_evidence.hpp"
#include "table_replay.hpp"
#include "watch.hpp"

namespace resolvent {

// Red nodes are states; blue nodes are their children, to be merged into a state or to become one. The
// outputs of merged nodes are scored as in table_replay.hpp.
class TreeMerging {
 public:
  // The tree must outlive it.
  TreeMerging(const NoisyTree& tree, const NoiseShape& noise, Watch& watch);

  // Return the table in which every node has a state, or nullopt if that needs more than `most_states`
  // states or `most_work` merged nodes.
  std::optional<Transitions> run(Id most_states, std::int64_t most_work);

 private:
  struct Count {
    Id cell;
    Id times;
  };
  using Row = std::vector<Count>;
  using Children = std::vector<std::pair<Id, Id>>;  // label, node

  // Merge `from` into `into`; return the gain.
  double merge_rows(Row& into, const Row& from) const;
  [[nodiscard]] double score_of(const Count* first, const Count* last) const;
  // Merge the tree below a blue node into a red one; return the gain. With `undo`, nothing changes.
  double fold(Id red, Id parent, Id label, bool undo);
  Id& child(Id node, Id label);
  void save(Id node);

  struct Saved {
    Id node;
    Row row;
    Children children;
  };

  const NoisyTree& tree_;
  SearchScore score_;
  Watch& watch_;
  std::vector<Row> rows_;           // by node
  std::vector<Children> children_;  // by node, by label
  std::vector<Saved> saved_;        // the nodes that a fold changed
  std::vector<std::int64_t> saved_at_;
  std::int64_t folds_ = 0;
  std::int64_t work_ = 0;
};

}  // namespace resolvent
