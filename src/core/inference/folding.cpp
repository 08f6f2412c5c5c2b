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

FoldingTree::FoldingTree(const PrefixTree& tree, const Worth* worth)
    : answers_(tree.answers),
      nodes_(tree.histories.parent.size() + 1),
      outputs_(1024),
      children_(1024),
      worth_(worth) {
  if (answers_.size() > std::numeric_limits<std::uint32_t>::max())
    throw std::length_error("the prefix tree holds more than 2^32 answers");
  const HistoryTree& histories = tree.histories;
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    const bool real = node < histories.parent.size();  // the last one only marks where lists end
    nodes_[node] = {
        .first_child = histories.first_child[node],
        .first_answer = static_cast<std::uint32_t>(tree.first_answer[node]),
        .gained_answers = end_of_list,
        .gained_children = end_of_list,
        .label = real ? histories.label[node] : none,
        .parent = real ? histories.parent[node] : none,
        .merged_into = static_cast<Id>(node),
        .gained = 0,
        .indexed = false,
        .red = false,
    };
  }
}

std::span<const Answer> FoldingTree::tree_answers(Id state) const {
  const std::size_t begin = at(state).first_answer;
  return answers_.subspan(begin, at(state + 1).first_answer - begin);
}

void FoldingTree::children(Id state, std::vector<Child>& into) const {
  const Node& node = at(state);
  into.clear();
  for (Id child = node.first_child; child < at(state + 1).first_child; ++child)
    into.push_back({at(child).label, child});
  for (auto link = node.gained_children; link != end_of_list; link = child_links_[index(link)].next)
    into.push_back({child_links_[index(link)].symbol, child_links_[index(link)].value});
  if (node.red)  // an edge of it may have been redirected since
    for (Child& child : into) child.state = children_.find(state, child.label);
  std::ranges::sort(into, {}, &Child::label);
}

void FoldingTree::answers(Id state, std::vector<Answer>& into) const {
  const auto own = tree_answers(state);
  into.assign(own.begin(), own.end());
  for (auto link = at(state).gained_answers; link != end_of_list; link = answer_links_[index(link)].next)
    into.push_back({answer_links_[index(link)].symbol, answer_links_[index(link)].value});
  std::ranges::sort(into, {}, &Answer::alpha);
}

// For states that are not indexed.
Id FoldingTree::output_of(Id state, Id alpha) const {
  const Node& node = at(state);
  for (const Answer answer : tree_answers(state))
    if (answer.alpha == alpha) return answer.output;
  for (auto link = node.gained_answers; link != end_of_list; link = answer_links_[index(link)].next)
    if (answer_links_[index(link)].symbol == alpha) return answer_links_[index(link)].value;
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

// Says nothing new, so undo leaves it there.
void FoldingTree::index_state(Id state) {
  Node& node = at(state);
  if (node.indexed) return;
  for (const Answer answer : tree_answers(state)) outputs_.at(state, answer.alpha) = answer.output;
  for (auto link = node.gained_answers; link != end_of_list; link = answer_links_[index(link)].next)
    outputs_.at(state, answer_links_[index(link)].symbol) = answer_links_[index(link)].value;
  for (Id child = node.first_child; child < at(state + 1).first_child; ++child)
    children_.at(state, at(child).label) = child;
  for (auto link = node.gained_children; link != end_of_list; link = child_links_[index(link)].next)
    children_.at(state, child_links_[index(link)].symbol) = child_links_[index(link)].value;
  node.indexed = true;
}

// Indexes a state as soon as searching it would take long.
void FoldingTree::index_if_large(Id state) {
  const Node& node = at(state);
  if (node.indexed) return;
  const std::size_t own = at(state + 1).first_answer - node.first_answer +
                          index(at(state + 1).first_child - node.first_child);
  if (own + node.gained > searched_at_most) index_state(state);
}

// Visits the answers of a state until `visit` returns false; whether it never did.
template <typename Visit>
bool FoldingTree::each_answer(Id state, Visit visit) const {
  for (const Answer answer : tree_answers(state))
    if (!visit(answer)) return false;
  for (auto at_link = at(state).gained_answers; at_link != end_of_list;) {
    const Link link = answer_links_[index(at_link)];  // a copy: visiting may grow the list
    if (!visit(Answer{link.symbol, link.value})) return false;
    at_link = link.next;
  }
  return true;
}

// Whether the answers of a state do not contradict those of a red one.
bool FoldingTree::agree(Id red, Id state) const {
  return each_answer(state, [&](Answer answer) {
    const Id known = outputs_.find(red, answer.alpha);
    return known == none || known == answer.output;
  });
}

bool FoldingTree::fold_answers(Pair pair) {
  if (at(pair.into).indexed) {
    return each_answer(pair.from, [&](Answer answer) {
      ++looked_at_;
      Id& known = outputs_.at(pair.into, answer.alpha);
      if (known == none) {
        known = answer.output;
        gain_answer(pair.into, answer);
        return true;
      }
      count_agreement(answer);
      return known == answer.output;
    });
  }
  return each_answer(pair.from, [&](Answer answer) {
    ++looked_at_;
    const Id known = output_of(pair.into, answer.alpha);
    if (known == none) {
      gain_answer(pair.into, answer);
      return true;
    }
    count_agreement(answer);
    return known == answer.output;
  });
}

void FoldingTree::gain_answer(Id state, Answer answer) {
  Node& node = at(state);
  answer_links_.push_back({answer.alpha, answer.output, node.gained_answers});
  node.gained_answers = static_cast<std::int32_t>(answer_links_.size() - 1);
  ++node.gained;
  changes_.push_back({Change::answered, state, answer.alpha, none, none});
}

void FoldingTree::fold_children(Pair pair) {
  if (at(pair.from).gained_children != end_of_list) {
    children(pair.from, scratch_);
    for (const Child child : scratch_) fold_child(pair.into, child);
    return;
  }
  const Id end = at(pair.from + 1).first_child;
  for (Id child = at(pair.from).first_child; child < end; ++child)
    fold_child(pair.into, {at(child).label, child});
}

void FoldingTree::fold_child(Id into, Child child) {
  const Id known = child_of(into, child.label);
  if (known != none) {
    queue_.push_back({known, child.state});
    // Along a single trace the queue holds nothing but the next pair: then this is all the time
    // there is to fetch what it needs, and what comes after it.
    fetch_ahead(answers_.data() + at(child.state).first_answer);
    fetch_ahead(&at(at(child.state).first_child));
    fetch_ahead(&at(child.state + 1));
    return;
  }
  Node& node = at(into);
  if (node.indexed) children_.at(into, child.label) = child.state;
  child_links_.push_back({child.label, child.state, node.gained_children});
  node.gained_children = static_cast<std::int32_t>(child_links_.size() - 1);
  ++node.gained;
  changes_.push_back({Change::grafted, into, child.label, child.state, at(child.state).parent});
  at(child.state).parent = into;
}

// States lie far apart in memory, but the queue tells which come next.
void FoldingTree::prefetch(std::size_t next) const {
  if (next + 12 < queue_.size()) {
    const Pair pair = queue_[next + 12];
    fetch_ahead(&at(pair.from));
    fetch_ahead(&at(pair.into));
  }
  if (next + 6 < queue_.size()) {
    const Pair pair = queue_[next + 6];
    fetch_ahead(answers_.data() + at(pair.from).first_answer);
    fetch_ahead(answers_.data() + at(pair.into).first_answer);
  }
}

std::optional<std::int64_t> FoldingTree::try_fold(Id red, Id blue, Pulse& pulse, std::size_t horizon) {
  changes_.clear();
  score_ = 0;
  looked_at_ = 0;
  evidence_ = 0;
  on_this_level_ = 0;
  weight_ = worth_ == nullptr ? 0 : Worth::nearest;
  if (!agree(red, blue)) return std::nullopt;  // as most pairs: then nothing needs undoing

  const Id above = at(blue).parent;
  const Id label = at(blue).label;
  children_.at(above, label) = red;
  changes_.push_back({Change::redirected, above, label, blue, none});

  queue_.assign(1, {red, blue});
  std::size_t level_end = 1;
  for (processed_ = 0; processed_ < queue_.size() && looked_at_ < horizon; ++processed_) {
    pulse.beat();
    prefetch(processed_);
    if (processed_ == level_end) {
      evidence_ += on_this_level_ * weight_;
      on_this_level_ = 0;
      weight_ = Worth::further(weight_);
      level_end = queue_.size();
    }
    const Pair pair = queue_[processed_];
    index_if_large(pair.into);
    if (!fold_answers(pair)) {
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
      case Change::answered:
        if (node.indexed) outputs_.erase(change.state, change.symbol);
        node.gained_answers = answer_links_.back().next;
        --node.gained;
        answer_links_.pop_back();
        break;
      case Change::grafted:
        if (node.indexed) children_.erase(change.state, change.symbol);
        node.gained_children = child_links_.back().next;
        --node.gained;
        child_links_.pop_back();
        at(change.other).parent = change.before;
        break;
      case Change::redirected:
        children_.at(change.state, change.symbol) = change.other;
        break;
    }
  }
}

}  // namespace resolvent
