#include "replayed_table.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "arithmetic.hpp"

namespace resolvent {
namespace {

constexpr double thousandths = 1000.0;

// Maximum number of nodes returned per conflict.
constexpr std::size_t most_nodes = 64;

}  // namespace

ReplayedTable::ReplayedTable(const ConflictTree& tree, Targets table, Id labels)
    : tree_(tree),
      table_(std::move(table)),
      labels_(labels),
      states_(static_cast<Id>(table_.size() / index(labels))),
      parent_(tree.size(), none),
      node_of_seen_(tree.seen.size()),
      outputs_of_alpha_(index(tree.alphas)),
      state_of_(tree.size(), none),
      nodes_in_(index(states_), 0),
      traffic_(table_.size(), 0),
      first_edge_(table_.size(), none),
      next_edge_(tree.size(), none),
      edge_before_(tree.size(), none),
      alpha_count_(index(states_) * index(tree.alphas), 0),
      distinct_(alpha_count_.size(), 0),
      output_count_(index(states_) * index(tree.outputs), 0),
      first_seen_(output_count_.size(), none),
      next_seen_(tree.seen.size(), none),
      seen_before_(tree.seen.size(), none),
      conflict_at_(alpha_count_.size(), -1) {
  std::vector<Id> counts(index(tree.alphas), 0);
  std::vector<Id> alpha_of(index(tree.outputs), 0);
  for (const auto [alpha, output] : tree.seen) {
    ++counts[index(alpha)];
    alpha_of[index(output)] = alpha;
  }
  for (Id output = 0; output < tree.outputs; ++output)
    outputs_of_alpha_[index(alpha_of[index(output)])].push_back(output);
  std::vector<Id> equal(index(tree.outputs), 0);
  for (const auto [alpha, output] : tree.seen) ++equal[index(output)];
  for (Id output = 0; output < tree.outputs; ++output)
    information_of_.push_back(std::llround(
        thousandths * natural_log(static_cast<double>(counts[index(alpha_of[index(output)])]) / equal[index(output)])));
  // The weight of n outputs of which n_i are equal is n log n - sum of n_i log n_i.
  const Id most = counts.empty() ? 0 : *std::ranges::max_element(counts);
  const auto weight = [](Id n) { return n == 0 ? 0 : std::llround(thousandths * n * natural_log(n)); };
  for (Id n = 0; n < most; ++n) weight_.push_back(weight(n + 1) - weight(n));

  for (std::size_t at = 0; at < tree.size(); ++at)  // parents come first
    for (auto next = tree.nodes[at].first_child; next < tree.nodes[at + 1].first_child; ++next)
      parent_[index(tree.children[next])] = static_cast<Id>(at);
  for (std::size_t at = 0; at < tree.size(); ++at)
    for (auto seen = tree.nodes[at].first_seen; seen < tree.nodes[at + 1].first_seen; ++seen)
      node_of_seen_[seen] = static_cast<Id>(at);
  add(0, 0);
  for (Id node = 1; index(node) < tree.size(); ++node) {
    const std::size_t edge = entry(state_of_[index(parent_[index(node)])], tree.nodes[index(node)].label);
    link_edge(node, edge);
    add(node, table_[edge]);
  }
}

void ReplayedTable::note_conflict(std::size_t cell, bool conflicted) {
  std::int32_t& at = conflict_at_[cell];
  if (conflicted == (at >= 0)) return;
  if (conflicted) {
    at = static_cast<std::int32_t>(conflicted_.size());
    conflicted_.push_back(cell);
  } else {
    conflicted_[static_cast<std::size_t>(at)] = conflicted_.back();
    conflict_at_[conflicted_.back()] = at;
    conflicted_.pop_back();
    at = -1;
  }
}

void ReplayedTable::link_edge(Id node, std::size_t at) {
  const Id next = first_edge_[at];
  next_edge_[index(node)] = next;
  edge_before_[index(node)] = none;
  if (next != none) edge_before_[index(next)] = node;
  first_edge_[at] = node;
  ++traffic_[at];
}

void ReplayedTable::unlink_edge(Id node, std::size_t at) {
  const Id next = next_edge_[index(node)];
  const Id before = edge_before_[index(node)];
  (before == none ? first_edge_[at] : next_edge_[index(before)]) = next;
  if (next != none) edge_before_[index(next)] = before;
  --traffic_[at];
}

// Count a node's outputs in a state.
void ReplayedTable::add(Id node, Id state) {
  state_of_[index(node)] = state;
  ++nodes_in_[index(state)];
  const auto end = tree_.nodes[index(node) + 1].first_seen;
  for (auto at = tree_.nodes[index(node)].first_seen; at < end; ++at) {
    const auto [alpha, output] = tree_.seen[at];
    const std::size_t cell = index(state) * index(tree_.alphas) + index(alpha);
    const std::size_t as = index(state) * index(tree_.outputs) + index(output);
    disagreement_ += weight_[index(alpha_count_[cell]++)] - weight_[index(output_count_[as])];
    if (output_count_[as]++ == 0) {
      information_ += information_of_[index(output)];
      note_conflict(cell, ++distinct_[cell] > 1);
    }
    const Id next = first_seen_[as];
    next_seen_[at] = next;
    seen_before_[at] = none;
    if (next != none) seen_before_[index(next)] = static_cast<Id>(at);
    first_seen_[as] = static_cast<Id>(at);
  }
}

void ReplayedTable::remove(Id node) {
  const Id state = state_of_[index(node)];
  --nodes_in_[index(state)];
  const auto end = tree_.nodes[index(node) + 1].first_seen;
  for (auto at = tree_.nodes[index(node)].first_seen; at < end; ++at) {
    const auto [alpha, output] = tree_.seen[at];
    const std::size_t cell = index(state) * index(tree_.alphas) + index(alpha);
    const std::size_t as = index(state) * index(tree_.outputs) + index(output);
    disagreement_ -= weight_[index(--alpha_count_[cell])] - weight_[index(--output_count_[as])];
    if (output_count_[as] == 0) {
      information_ -= information_of_[index(output)];
      note_conflict(cell, --distinct_[cell] > 1);
    }
    const Id next = next_seen_[at];
    const Id before = seen_before_[at];
    (before == none ? first_seen_[as] : next_seen_[index(before)]) = next;
    if (next != none) seen_before_[index(next)] = before;
  }
}

// Move a node to another state, and its child edges to that state's transitions.
void ReplayedTable::move_node(Id node, Id to) {
  ++visits_;
  const Id from = state_of_[index(node)];
  remove(node);
  add(node, to);
  for (auto at = tree_.nodes[index(node)].first_child; at < tree_.nodes[index(node) + 1].first_child; ++at) {
    const Id child = tree_.children[at];
    const Id label = tree_.nodes[index(child)].label;
    unlink_edge(child, entry(from, label));
    link_edge(child, entry(to, label));
  }
}

bool ReplayedTable::change(Id state, Id label, Id target, Nats most) {
  const std::size_t at = entry(state, label);
  if (table_[at] == target) return true;
  done_.push_back({none, static_cast<Id>(at), table_[at]});
  table_[at] = target;
  ahead_.clear();
  for (Id node = first_edge_[at]; node != none; node = next_edge_[index(node)]) ahead_.push_back(node);
  visits_ += static_cast<std::int64_t>(ahead_.size());
  while (!ahead_.empty()) {
    const Id node = ahead_.back();
    ahead_.pop_back();
    const Id to = table_[entry(state_of_[index(parent_[index(node)])], tree_.nodes[index(node)].label)];
    if (to == state_of_[index(node)]) continue;
    done_.push_back({node, none, state_of_[index(node)]});
    move_node(node, to);
    if (disagreement_ > most) return false;
    for (auto next = tree_.nodes[index(node)].first_child; next < tree_.nodes[index(node) + 1].first_child; ++next)
      ahead_.push_back(tree_.children[next]);
  }
  return true;
}

void ReplayedTable::undo(std::size_t mark) {
  for (; done_.size() > mark; done_.pop_back()) {
    const Step& step = done_.back();
    if (step.node == none)
      table_[index(step.entry)] = step.before;
    else
      move_node(step.node, step.before);
  }
}

void ReplayedTable::nodes_in_conflict(std::size_t conflict, bool rarest, std::vector<Id>& nodes) const {
  const std::size_t cell = conflicted_[conflict];
  const std::size_t state = cell / index(tree_.alphas);
  Id chosen = none;
  Id rarest_count = 0;
  for (const Id output : outputs_of_alpha_[cell % index(tree_.alphas)]) {
    const Id times = output_count_[state * index(tree_.outputs) + index(output)];
    if (times > 0 && (chosen == none || (rarest ? times < rarest_count : times >= rarest_count))) {
      chosen = output;
      rarest_count = times;
    }
  }
  nodes.clear();
  for (Id at = first_seen_[state * index(tree_.outputs) + index(chosen)]; at != none && nodes.size() < most_nodes;
       at = next_seen_[index(at)])
    nodes.push_back(node_of_seen_[index(at)]);
}

}  // namespace resolvent
