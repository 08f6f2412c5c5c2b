#include "replayed_table.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "elementary.hpp"

namespace resolvent {
namespace {

constexpr double thousandths = 1000.0;

// Nodes of one conflict that are told.
constexpr std::size_t most_nodes = 64;

}  // namespace

ReplayedTable::ReplayedTable(const ClashTree& tree, Targets table, Id labels)
    : tree_(tree),
      table_(std::move(table)),
      labels_(labels),
      states_(static_cast<Id>(table_.size() / index(labels))),
      parent_(tree.size(), none),
      answer_node_(tree.answers.size()),
      outputs_of_alpha_(index(tree.alphas)),
      state_of_(tree.size(), none),
      nodes_in_(index(states_), 0),
      traffic_(table_.size(), 0),
      first_edge_(table_.size(), none),
      next_edge_(tree.size(), none),
      edge_before_(tree.size(), none),
      answered_(index(states_) * index(tree.alphas), 0),
      distinct_(answered_.size(), 0),
      answered_as_(index(states_) * index(tree.outputs), 0),
      first_answer_(answered_as_.size(), none),
      next_answer_(tree.answers.size(), none),
      answer_before_(tree.answers.size(), none),
      conflict_at_(answered_.size(), -1) {
  std::vector<Id> answers(index(tree.alphas), 0);
  std::vector<Id> alpha_of(index(tree.outputs), 0);
  for (const auto [alpha, output] : tree.answers) {
    ++answers[index(alpha)];
    alpha_of[index(output)] = alpha;
  }
  for (Id output = 0; output < tree.outputs; ++output)
    outputs_of_alpha_[index(alpha_of[index(output)])].push_back(output);
  std::vector<Id> equal(index(tree.outputs), 0);
  for (const auto [alpha, output] : tree.answers) ++equal[index(output)];
  for (Id output = 0; output < tree.outputs; ++output)
    surprise_of_.push_back(std::llround(
        thousandths * natural_log(static_cast<double>(answers[index(alpha_of[index(output)])]) / equal[index(output)])));
  // n answers of which n_i are equal weigh n log n - sum of n_i log n_i.
  const Id most = answers.empty() ? 0 : *std::ranges::max_element(answers);
  const auto weight = [](Id n) { return n == 0 ? 0 : std::llround(thousandths * n * natural_log(n)); };
  for (Id n = 0; n < most; ++n) weight_.push_back(weight(n + 1) - weight(n));

  for (std::size_t at = 0; at < tree.size(); ++at)  // parents come first
    for (auto next = tree.nodes[at].first_child; next < tree.nodes[at + 1].first_child; ++next)
      parent_[index(tree.children[next])] = static_cast<Id>(at);
  for (std::size_t at = 0; at < tree.size(); ++at)
    for (auto answer = tree.nodes[at].first_answer; answer < tree.nodes[at + 1].first_answer; ++answer)
      answer_node_[answer] = static_cast<Id>(at);
  place(0, 0);
  for (Id node = 1; index(node) < tree.size(); ++node) {
    const std::size_t edge = entry(state_of_[index(parent_[index(node)])], tree.nodes[index(node)].label);
    link_edge(node, edge);
    place(node, table_[edge]);
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

// Puts a node's answers into a state.
void ReplayedTable::place(Id node, Id state) {
  state_of_[index(node)] = state;
  ++nodes_in_[index(state)];
  const auto end = tree_.nodes[index(node) + 1].first_answer;
  for (auto at = tree_.nodes[index(node)].first_answer; at < end; ++at) {
    const auto [alpha, output] = tree_.answers[at];
    const std::size_t cell = index(state) * index(tree_.alphas) + index(alpha);
    const std::size_t as = index(state) * index(tree_.outputs) + index(output);
    disagreement_ += weight_[index(answered_[cell]++)] - weight_[index(answered_as_[as])];
    if (answered_as_[as]++ == 0) {
      surprise_ += surprise_of_[index(output)];
      note_conflict(cell, ++distinct_[cell] > 1);
    }
    const Id next = first_answer_[as];
    next_answer_[at] = next;
    answer_before_[at] = none;
    if (next != none) answer_before_[index(next)] = static_cast<Id>(at);
    first_answer_[as] = static_cast<Id>(at);
  }
}

void ReplayedTable::take_away(Id node) {
  const Id state = state_of_[index(node)];
  --nodes_in_[index(state)];
  const auto end = tree_.nodes[index(node) + 1].first_answer;
  for (auto at = tree_.nodes[index(node)].first_answer; at < end; ++at) {
    const auto [alpha, output] = tree_.answers[at];
    const std::size_t cell = index(state) * index(tree_.alphas) + index(alpha);
    const std::size_t as = index(state) * index(tree_.outputs) + index(output);
    disagreement_ -= weight_[index(--answered_[cell])] - weight_[index(--answered_as_[as])];
    if (answered_as_[as] == 0) {
      surprise_ -= surprise_of_[index(output)];
      note_conflict(cell, --distinct_[cell] > 1);
    }
    const Id next = next_answer_[at];
    const Id before = answer_before_[at];
    (before == none ? first_answer_[as] : next_answer_[index(before)]) = next;
    if (next != none) answer_before_[index(next)] = before;
  }
}

// Takes a node to another state, and its children to that state's transitions.
void ReplayedTable::move_node(Id node, Id to) {
  ++visits_;
  const Id from = state_of_[index(node)];
  take_away(node);
  place(node, to);
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
  Id count = 0;
  for (const Id output : outputs_of_alpha_[cell % index(tree_.alphas)]) {
    const Id times = answered_as_[state * index(tree_.outputs) + index(output)];
    if (times > 0 && (chosen == none || (rarest ? times < count : times >= count))) {
      chosen = output;
      count = times;
    }
  }
  nodes.clear();
  for (Id at = first_answer_[state * index(tree_.outputs) + index(chosen)]; at != none && nodes.size() < most_nodes;
       at = next_answer_[index(at)])
    nodes.push_back(answer_node_[index(at)]);
}

}  // namespace resolvent
