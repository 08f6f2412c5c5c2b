#include "folding.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace resolvent {
namespace {

constexpr std::int32_t end_of_list = -1;
constexpr std::size_t searched_at_most = 8;

void fetch_ahead([[maybe_unused]] const void* address) {
#if defined(__GNUC__) || defined(__clang__)
  __builtin_prefetch(address);
#endif
}

}  // namespace

FoldingTree::FoldingTree(const PrefixTree& tree, const OutputInformation* information)
    : seen_(tree.outputs),
      nodes_(tree.histories.parent.size() + 1),
      outputs_(1024),
      children_(1024),
      information_(information) {
  if (seen_.size() > std::numeric_limits<std::uint32_t>::max())
    throw std::length_error("the prefix tree holds more than 2^32 outputs");
  const HistoryTree& histories = tree.histories;
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    const bool real = node < histories.parent.size();  // the last one only marks the ends of lists
    nodes_[node] = {
        .first_child = histories.first_child[node],
        .first_output = static_cast<std::uint32_t>(tree.first_output[node]),
        .gained_outputs = end_of_list,
        .gained_children = end_of_list,
        .label = real ? histories.label[node] : none,
        .parent = real ? histories.parent[node] : none,
        .merged_into = static_cast<Id>(node),
        .gain = 0,
        .indexed = false,
        .red = false,
    };
  }
}

std::span<const Output> FoldingTree::tree_outputs(Id state) const {
  const std::size_t begin = at(state).first_output;
  return seen_.subspan(begin, at(state + 1).first_output - begin);
}

void FoldingTree::children(Id state, std::vector<Child>& into) const {
  const Node& node = at(state);
  into.clear();
  for (Id child = node.first_child; child < at(state + 1).first_child; ++child)
    into.push_back({at(child).label, child});
  for (auto link = node.gained_children; link != end_of_list; link = child_links_[index(link)].next)
    into.push_back({child_links_[index(link)].symbol, child_links_[index(link)].value});
  if (node.red)  // its edges may have been redirected
    for (Child& child : into) child.state = children_.find(state, child.label);
  std::ranges::sort(into, {}, &Child::label);
}

void FoldingTree::outputs(Id state, std::vector<Output>& into) const {
  const auto own = tree_outputs(state);
  into.assign(own.begin(), own.end());
  for (auto link = at(state).gained_outputs; link != end_of_list; link = output_links_[index(link)].next)
    into.push_back({output_links_[index(link)].symbol, output_links_[index(link)].value});
  std::ranges::sort(into, {}, &Output::alpha);
}

// Only for states that are not indexed.
Id FoldingTree::output_of(Id state, Id alpha) const {
  const Node& node = at(state);
  for (const Output output : tree_outputs(state))
    if (output.alpha == alpha) return output.output;
  for (auto link = node.gained_outputs; link != end_of_list; link = output_links_[index(link)].next)
    if (output_links_[index(link)].symbol == alpha) return output_links_[index(link)].value;
  return none;
}

Id FoldingTree::child_of(Id state, Id label) const {
  const Node& node = at(state);
  if (node.indexed) return children_.find(state, label);
  for (Id child = node.first_child; child < at(state + 1).first_child; ++child)
    if (at(child).label == label) return child;
  for (auto link = node.gained_children; link != end_of_list; link = child_links_[index(link)].next)
    if (child_links_[index(link)].symbol == label) return child_links_[index(link)].value;
  return none;
}

// An index adds no information, so that undo leaves it in place.
void FoldingTree::index_state(Id state) {
  Node& node = at(state);
  if (node.indexed) return;
  for (const Output output : tree_outputs(state)) outputs_.at(state, output.alpha) = output.output;
  for (auto link = node.gained_outputs; link != end_of_list; link = output_links_[index(link)].next)
    outputs_.at(state, output_links_[index(link)].symbol) = output_links_[index(link)].value;
  for (Id child = node.first_child; child < at(state + 1).first_child; ++child)
    children_.at(state, at(child).label) = child;
  for (auto link = node.gained_children; link != end_of_list; link = child_links_[index(link)].next)
    children_.at(state, child_links_[index(link)].symbol) = child_links_[index(link)].value;
  node.indexed = true;
}

// Index a state once searching it would take long.
void FoldingTree::index_if_large(Id state) {
  const Node& node = at(state);
  if (node.indexed) return;
  const std::size_t own =
      at(state + 1).first_output - node.first_output + index(at(state + 1).first_child - node.first_child);
  if (own + node.gain > searched_at_most) index_state(state);
}

// Visit the outputs of a state until `visit` returns false; return whether all were visited.
template <typename Visit>
bool FoldingTree::each_output(Id state, Visit visit) const {
  for (const Output output : tree_outputs(state))
    if (!visit(output)) return false;
  for (auto at_link = at(state).gained_outputs; at_link != end_of_list;) {
    const Link link = output_links_[index(at_link)];  // a copy, since `visit` may extend the list
    if (!visit(Output{link.symbol, link.value})) return false;
    at_link = link.next;
  }
  return true;
}

// Whether the outputs of a state agree with those of a red state.
bool FoldingTree::agree(Id red, Id state) const {
  return each_output(state, [&](Output output) {
    const Id known = outputs_.find(red, output.alpha);
    return known == none || known == output.output;
  });
}

bool FoldingTree::fold_outputs(Pair pair) {
  if (at(pair.into).indexed) {
    return each_output(pair.from, [&](Output output) {
      ++outputs_compared_;
      Id& known = outputs_.at(pair.into, output.alpha);
      if (known == none) {
        known = output.output;
        gain_output(pair.into, output);
        return true;
      }
      count_agreement(output);
      return known == output.output;
    });
  }
  return each_output(pair.from, [&](Output output) {
    ++outputs_compared_;
    const Id known = output_of(pair.into, output.alpha);
    if (known == none) {
      gain_output(pair.into, output);
      return true;
    }
    count_agreement(output);
    return known == output.output;
  });
}

void FoldingTree::gain_output(Id state, Output output) {
  Node& node = at(state);
  output_links_.push_back({output.alpha, output.output, node.gained_outputs});
  node.gained_outputs = static_cast<std::int32_t>(output_links_.size() - 1);
  ++node.gain;
  changes_.push_back({Change::output_added, state, output.alpha, none, none});
}

void FoldingTree::fold_children(Pair pair) {
  if (at(pair.from).gained_children != end_of_list) {
    children(pair.from, scratch_);
    for (const Child child : scratch_) fold_child(pair.into, child);
    return;
  }
  const Id end = at(pair.from + 1).first_child;
  for (Id child = at(pair.from).first_child; child < end; ++child) fold_child(pair.into, {at(child).label, child});
}

void FoldingTree::fold_child(Id into, Child child) {
  const Id known = child_of(into, child.label);
  if (known != none) {
    queue_.push_back({known, child.state});
    // Along a single trace the queue holds only the next pair: prefetch what it needs now, and what
    // follows.
    fetch_ahead(seen_.data() + at(child.state).first_output);
    fetch_ahead(&at(at(child.state).first_child));
    fetch_ahead(&at(child.state + 1));
    return;
  }
  Node& node = at(into);
  if (node.indexed) children_.at(into, child.label) = child.state;
  child_links_.push_back({child.label, child.state, node.gained_children});
  node.gained_children = static_cast<std::int32_t>(child_links_.size() - 1);
  ++node.gain;
  changes_.push_back({Change::grafted, into, child.label, child.state, at(child.state).parent});
  at(child.state).parent = into;
}

// States are far apart in memory, but the queue has the next ones.
void FoldingTree::prefetch(std::size_t next) const {
  if (next + 12 < queue_.size()) {
    const Pair pair = queue_[next + 12];
    fetch_ahead(&at(pair.from));
    fetch_ahead(&at(pair.into));
  }
  if (next + 6 < queue_.size()) {
    const Pair pair = queue_[next + 6];
    fetch_ahead(seen_.data() + at(pair.from).first_output);
    fetch_ahead(seen_.data() + at(pair.into).first_output);
  }
}

std::optional<std::int64_t> FoldingTree::try_fold(Id red, Id blue, Watch& watch, std::size_t horizon) {
  changes_.clear();
  score_ = 0;
  outputs_compared_ = 0;
  evidence_ = 0;
  on_this_level_ = 0;
  weight_ = information_ == nullptr ? 0 : OutputInformation::nearest;
  if (!agree(red, blue)) return std::nullopt;  // as for most pairs; nothing to undo

  const Id above = at(blue).parent;
  const Id label = at(blue).label;
  children_.at(above, label) = red;
  changes_.push_back({Change::redirected, above, label, blue, none});

  queue_.assign(1, {red, blue});
  std::size_t level_end = 1;
  for (processed_ = 0; processed_ < queue_.size() && outputs_compared_ < horizon; ++processed_) {
    watch.tick();
    prefetch(processed_);
    if (processed_ == level_end) {
      evidence_ += on_this_level_ * weight_;
      on_this_level_ = 0;
      weight_ = OutputInformation::at_next_distance(weight_);
      level_end = queue_.size();
    }
    const Pair pair = queue_[processed_];
    index_if_large(pair.into);
    if (!fold_outputs(pair)) {
      undo();
      return std::nullopt;
    }
    fold_children(pair);
  }
  evidence_ += on_this_level_ * weight_;
  return score_;
}

void FoldingTree::keep() {
  for (const Pair pair : queue_) at(pair.from).merged_into = pair.into;
}

void FoldingTree::undo() {
  for (; !changes_.empty(); changes_.pop_back()) {
    const Change& change = changes_.back();
    Node& node = at(change.state);
    switch (change.kind) {
      case Change::output_added:
        if (node.indexed) outputs_.erase(change.state, change.symbol);
        node.gained_outputs = output_links_.back().next;
        --node.gain;
        output_links_.pop_back();
        break;
      case Change::grafted:
        if (node.indexed) children_.erase(change.state, change.symbol);
        node.gained_children = child_links_.back().next;
        --node.gain;
        child_links_.pop_back();
        at(change.second).parent = change.before;
        break;
      case Change::redirected:
        children_.at(change.state, change.symbol) = change.second;
        break;
    }
  }
}

}  // namespace resolvent
