#include "conflict_tree.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <stdexcept>

#include "random.hpp"

namespace resolvent {
namespace {

using Flags = std::vector<std::uint8_t>;

std::span<const Output> outputs_at(const PrefixTree& tree, Id node) {
  return std::span(tree.outputs)
      .subspan(tree.first_output[index(node)], tree.first_output[index(node) + 1] - tree.first_output[index(node)]);
}

// Draw whole label sequences in random order until there are enough nodes. A single longer one, such as a
// log without restarts, is truncated.
Flags draw_histories(const PrefixTree& tree, std::size_t at_most, std::uint64_t seed) {
  const HistoryTree& histories = tree.histories;
  const auto nodes = index(tree.size());
  if (nodes <= at_most) return Flags(nodes, 1);
  std::vector<Id> ends;
  for (Id node = 0; node < tree.size(); ++node)
    if (histories.first_child[index(node)] == histories.first_child[index(node) + 1]) ends.push_back(node);
  Random random(seed);
  Flags kept(nodes, 0);
  std::size_t count = 0;
  std::vector<Id> added;
  for (std::size_t left = ends.size(); left > 0 && count < at_most; --left) {
    std::swap(ends[index(random.below(static_cast<Id>(left)))], ends[left - 1]);
    added.clear();
    for (Id node = ends[left - 1]; node != none && kept[index(node)] == 0; node = histories.parent[index(node)])
      added.push_back(node);
    const std::size_t taken = std::min(added.size(), at_most);
    for (std::size_t at = added.size() - taken; at < added.size(); ++at) kept[index(added[at])] = 1;
    count += taken;
  }
  return kept;
}

// Numbers the outputs of alphas with at least two outputs among the nodes that are kept.
class Numbering {
 public:
  Numbering(const PrefixTree& tree, const Flags& kept, Watch& watch) {
    std::vector<std::uint64_t> all;
    for (Id node = 0; node < tree.size(); ++node) {
      watch.tick();
      if (kept[index(node)] != 0)
        for (const Output& output : outputs_at(tree, node)) all.push_back(key(output));
    }
    std::ranges::sort(all);
    all.erase(std::ranges::unique(all).begin(), all.end());
    for (auto group = all.begin(); group != all.end();) {
      const auto end =
          std::find_if(group, all.end(), [&](std::uint64_t key_at) { return key_at >> 32 != *group >> 32; });
      if (end - group > 1) {
        keys_.insert(keys_.end(), group, end);
        alpha_of_.resize(keys_.size(), alphas++);
      }
      group = end;
    }
  }

  Id alphas = 0;
  [[nodiscard]] Id outputs() const { return static_cast<Id>(keys_.size()); }

  [[nodiscard]] std::optional<ConflictTree::Output> of(const Output& output) const {
    const auto match = std::ranges::lower_bound(keys_, key(output));
    if (match == keys_.end() || *match != key(output)) return std::nullopt;
    const auto at = match - keys_.begin();
    return ConflictTree::Output{alpha_of_[static_cast<std::size_t>(at)], static_cast<Id>(at)};
  }

 private:
  static std::uint64_t key(const Output& output) {
    return static_cast<std::uint64_t>(output.alpha) << 32 | static_cast<std::uint64_t>(output.output);
  }

  std::vector<std::uint64_t> keys_;
  std::vector<Id> alpha_of_;
};

// Keep only nodes with an output that can conflict at or below them.
void prune(const PrefixTree& tree, const Numbering& numbering, Flags& kept, Watch& watch) {
  Flags useful(kept.size(), 0);
  useful[0] = 1;
  for (Id node = tree.size() - 1; node > 0; --node) {
    watch.tick();
    if (kept[index(node)] == 0) continue;
    if (useful[index(node)] == 0)
      useful[index(node)] = std::ranges::any_of(outputs_at(tree, node),
                                                [&](const Output& output) { return numbering.of(output).has_value(); });
    if (useful[index(node)] != 0) useful[index(tree.histories.parent[index(node)])] = 1;
  }
  kept = std::move(useful);
}

}  // namespace

LabelCodes::LabelCodes(const HistoryTree& histories) : labels_(histories.label.begin() + 1, histories.label.end()) {
  std::ranges::sort(labels_);
  labels_.erase(std::ranges::unique(labels_).begin(), labels_.end());
}

Id LabelCodes::of(Id label) const {
  return static_cast<Id>(std::ranges::lower_bound(labels_, label) - labels_.begin());
}

ConflictTree make_conflict_tree(const PrefixTree& tree, const LabelCodes& labels, std::size_t at_most,
                                std::uint64_t seed, Watch& watch) {
  const HistoryTree& histories = tree.histories;
  Flags kept = draw_histories(tree, at_most, seed);
  const Numbering numbering(tree, kept, watch);
  prune(tree, numbering, kept, watch);

  ConflictTree result;
  result.alphas = numbering.alphas;
  result.outputs = numbering.outputs();
  result.edges.resize(index(labels.size()));
  struct Ahead {
    Id node;
    Id parent;  // renumbered
  };
  std::vector<Ahead> ahead{{0, none}};
  std::vector<Id> parents;
  while (!ahead.empty()) {
    watch.tick();
    const auto [node, parent] = ahead.back();
    ahead.pop_back();
    const auto number = static_cast<Id>(result.nodes.size());
    const Id label = node == 0 ? none : labels.of(histories.label[index(node)]);
    result.nodes.push_back({label, 0, static_cast<std::uint32_t>(result.seen.size())});
    parents.push_back(parent);
    if (parent != none) result.edges[index(label)].push_back({parent, number});
    for (const Output& output : outputs_at(tree, node))
      if (const auto numbered = numbering.of(output)) result.seen.push_back(*numbered);
    for (Id child = histories.first_child[index(node) + 1]; child-- > histories.first_child[index(node)];)
      if (kept[index(child)] != 0) ahead.push_back({child, number});
  }
  if (result.seen.size() > std::numeric_limits<std::uint32_t>::max())
    throw std::length_error("there are more than 2^32 outputs to search over");
  result.nodes.push_back({none, 0, static_cast<std::uint32_t>(result.seen.size())});

  // The children of a node are contiguous, in label order.
  for (const Id parent : parents)
    if (parent != none) ++result.nodes[index(parent) + 1].first_child;
  for (std::size_t at = 1; at < result.nodes.size(); ++at)
    result.nodes[at].first_child += result.nodes[at - 1].first_child;
  result.children.resize(parents.size() - 1);
  std::vector<std::uint32_t> next(parents.size());
  for (std::size_t at = 0; at < parents.size(); ++at) next[at] = result.nodes[at].first_child;
  for (std::size_t at = 1; at < parents.size(); ++at) result.children[next[index(parents[at])]++] = static_cast<Id>(at);
  return result;
}

}  // namespace resolvent
