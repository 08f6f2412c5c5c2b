#include "convergence.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace resolvent {
namespace {

using Word = std::uint64_t;
constexpr std::size_t word_bits = 64;

Word bit(Id state) { return Word{1} << (index(state) % word_bits); }

// For each query and output, the set of states with another output. Outputs that no state has share one
// last entry per query.
class ContradictedBy {
 public:
  ContradictedBy(const ObservedOutputs& observed, Id queries, std::size_t words)
      : words_(words), first_(index(queries) + 1, 0) {
    std::size_t at = 0;
    for (std::size_t query = 0; query < index(queries); ++query) {
      first_[query] = outputs_.size();
      const std::size_t start = at;
      while (at < observed.query.size() && index(observed.query[at]) == query)
        outputs_.push_back(observed.output[at++]);
      const auto begin = outputs_.begin() + static_cast<std::ptrdiff_t>(first_[query]);
      std::sort(begin, outputs_.end());
      outputs_.erase(std::unique(begin, outputs_.end()), outputs_.end());
      first_[query + 1] = outputs_.size();
      fill(observed, query, start, at);
    }
  }

  [[nodiscard]] std::size_t number(Id query, Id output) const {
    const auto begin = outputs_.begin() + static_cast<std::ptrdiff_t>(first_[index(query)]);
    const auto end = outputs_.begin() + static_cast<std::ptrdiff_t>(first_[index(query) + 1]);
    const auto match = std::lower_bound(begin, end, output);
    const auto position = match != end && *match == output ? match : end;
    return first_[index(query)] + index(query) + static_cast<std::size_t>(position - begin);
  }

  [[nodiscard]] const Word* states(std::size_t number) const { return &masks_[number * words_]; }

 private:
  void fill(const ObservedOutputs& observed, std::size_t query, std::size_t start, std::size_t stop) {
    std::vector<Word> all(words_, 0);
    for (std::size_t at = start; at < stop; ++at) all[index(observed.state[at]) / word_bits] |= bit(observed.state[at]);
    const std::size_t masks = first_[query + 1] - first_[query] + 1;
    for (std::size_t mask = 0; mask < masks; ++mask) masks_.insert(masks_.end(), all.begin(), all.end());
    for (std::size_t at = start; at < stop; ++at) {
      const std::size_t mask = number(static_cast<Id>(query), observed.output[at]);
      masks_[mask * words_ + index(observed.state[at]) / word_bits] &= ~bit(observed.state[at]);
    }
  }

  std::size_t words_;
  std::vector<std::size_t> first_;
  std::vector<Id> outputs_;
  std::vector<Word> masks_;
};

// The observed outputs of each node, as numbers of `ContradictedBy`.
struct NodeOutputs {
  std::vector<std::size_t> first;  // by node, with one entry past the end
  std::vector<std::size_t> mask;

  NodeOutputs(const HistoryTree& tree, std::span<const Id> query, std::span<const Id> output,
              const ContradictedBy& contradicted_by)
      : first(index(tree.size()) + 1, 0) {
    for (std::size_t row = 0; row < query.size(); ++row)
      if (query[row] != none) ++first[index(tree.node_of_row[row])];
    std::size_t total = 0;
    for (std::size_t& entry : first) entry = total += entry;
    mask.resize(total);
    for (std::size_t row = 0; row < query.size(); ++row)
      if (query[row] != none)
        mask[--first[index(tree.node_of_row[row])]] = contradicted_by.number(query[row], output[row]);
  }
};

class ConvergenceSearch {
 public:
  ConvergenceSearch(const HistoryTree& tree, const ContradictedBy& contradicted_by, const NodeOutputs& node_outputs,
                    const TransitionTable& table, std::size_t words)
      : tree_(tree), contradicted_by_(contradicted_by), node_outputs_(node_outputs), table_(table), words_(words) {
    // By label, then by state: the states of a node are looked up for one label at a time.
    by_label_.resize(table.target.size());
    for (std::size_t state = 0; state < index(table.states); ++state)
      for (std::size_t label = 0; label < index(table.labels); ++label)
        by_label_[label * index(table.states) + state] = table.target[state * index(table.labels) + label];
    every_state_.assign(words, 0);
    for (Id state = 0; state < table.states; ++state) every_state_[index(state) / word_bits] |= bit(state);
    states_.assign(index(tree.size()), 0);
    for (std::size_t node = 1; node < states_.size(); ++node) {
      const Id above = states_[index(tree.parent[node])];
      const Id label = tree.label[node];
      states_[node] = above == none || label >= table.labels ? none : of_label(label)[index(above)];
    }
  }

  Convergence run(Watch& watch) {
    std::vector<Id> level{0, 1};  // first node of each depth
    while (level.back() < tree_.size()) level.push_back(tree_.first_child[index(level.back())]);
    watch.progress.nodes = tree_.size();
    std::vector<Word> below;
    std::vector<Word> here;
    for (std::size_t depth = level.size() - 1; depth-- > 0;) {
      here.resize(index(level[depth + 1] - level[depth]) * words_);
      for (Id node = level[depth + 1]; node-- > level[depth];) {
        Word* open = &here[index(node - level[depth]) * words_];
        narrow(node, open, below.data(), level[depth + 1]);
        count(node, open);
        ++watch.progress.settled;
        watch.tick();
      }
      std::swap(here, below);
    }
    return out_;
  }

 private:
  [[nodiscard]] const Id* of_label(Id label) const { return &by_label_[index(label) * index(table_.states)]; }

  // Find the states that are consistent with a node: its own outputs exclude some, and a child excludes
  // those whose successor is inconsistent with it.
  void narrow(Id node, Word* open, const Word* below, Id first_below) const {
    std::ranges::copy(every_state_, open);
    for (std::size_t at = node_outputs_.first[index(node)]; at < node_outputs_.first[index(node) + 1]; ++at) {
      const Word* mask = contradicted_by_.states(node_outputs_.mask[at]);
      for (std::size_t word = 0; word < words_; ++word) open[word] &= ~mask[word];
    }
    for (Id child = tree_.first_child[index(node)]; child < tree_.first_child[index(node) + 1]; ++child) {
      const Id label = tree_.label[index(child)];
      if (label < table_.labels) narrow_by_child(of_label(label), open, below + index(child - first_below) * words_);
    }
  }

  void narrow_by_child(const Id* table, Word* open, const Word* there) const {
    for (std::size_t word = 0; word < words_; ++word) {
      for (Word left = open[word]; left != 0; left &= left - 1) {
        const auto position = static_cast<std::size_t>(std::countr_zero(left));
        const Id target = table[word * word_bits + position];
        if (target != none && (there[index(target) / word_bits] & bit(target)) == 0)
          open[word] &= ~(Word{1} << position);
      }
    }
  }

  // Nodes are visited from last to first, so the reported node is the first one that does not converge.
  void count(Id node, const Word* open) {
    const Id state = states_[index(node)];
    if (state == none) return;
    ++out_.histories;
    for (std::size_t word = 0; word < words_; ++word) {
      Word left = open[word];
      if (index(state) / word_bits == word) left &= ~bit(state);
      if (left == 0) continue;
      out_.node = node;
      out_.state = state;
      out_.other = static_cast<Id>(word * word_bits + static_cast<std::size_t>(std::countr_zero(left)));
      return;
    }
    ++out_.converging;
  }

  const HistoryTree& tree_;
  const ContradictedBy& contradicted_by_;
  const NodeOutputs& node_outputs_;
  TransitionTable table_;
  std::size_t words_;
  std::vector<Word> every_state_;
  std::vector<Id> by_label_;
  std::vector<Id> states_;
  Convergence out_;
};

}  // namespace

Convergence converge(const HistoryTree& tree, std::span<const Id> query, std::span<const Id> output,
                     const ObservedOutputs& observed, Id queries, const TransitionTable& table, Watch& watch) {
  const std::size_t words = (index(table.states) + word_bits - 1) / word_bits;
  const ContradictedBy contradicted_by(observed, queries, words);
  const NodeOutputs node_outputs(tree, query, output, contradicted_by);
  return ConvergenceSearch(tree, contradicted_by, node_outputs, table, words).run(watch);
}

}  // namespace resolvent
