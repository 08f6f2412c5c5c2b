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

// For each query and output the states that answer otherwise. Outputs that no
// state shows come last of each query, as one.
class Otherwise {
 public:
  Otherwise(const Shown& shown, Id queries, std::size_t words) : words_(words), first_(index(queries) + 1, 0) {
    std::size_t at = 0;
    for (std::size_t query = 0; query < index(queries); ++query) {
      first_[query] = outputs_.size();
      const std::size_t start = at;
      while (at < shown.query.size() && index(shown.query[at]) == query)
        outputs_.push_back(shown.output[at++]);
      const auto begin = outputs_.begin() + static_cast<std::ptrdiff_t>(first_[query]);
      std::sort(begin, outputs_.end());
      outputs_.erase(std::unique(begin, outputs_.end()), outputs_.end());
      first_[query + 1] = outputs_.size();
      fill(shown, query, start, at);
    }
  }

  [[nodiscard]] std::size_t number(Id query, Id output) const {
    const auto begin = outputs_.begin() + static_cast<std::ptrdiff_t>(first_[index(query)]);
    const auto end = outputs_.begin() + static_cast<std::ptrdiff_t>(first_[index(query) + 1]);
    const auto found = std::lower_bound(begin, end, output);
    const auto place = found != end && *found == output ? found : end;
    return first_[index(query)] + index(query) + static_cast<std::size_t>(place - begin);
  }

  [[nodiscard]] const Word* states(std::size_t number) const { return &masks_[number * words_]; }

 private:
  void fill(const Shown& shown, std::size_t query, std::size_t start, std::size_t stop) {
    std::vector<Word> all(words_, 0);
    for (std::size_t at = start; at < stop; ++at) all[index(shown.state[at]) / word_bits] |= bit(shown.state[at]);
    const std::size_t kinds = first_[query + 1] - first_[query] + 1;
    for (std::size_t kind = 0; kind < kinds; ++kind) masks_.insert(masks_.end(), all.begin(), all.end());
    for (std::size_t at = start; at < stop; ++at) {
      const std::size_t one = number(static_cast<Id>(query), shown.output[at]);
      masks_[one * words_ + index(shown.state[at]) / word_bits] &= ~bit(shown.state[at]);
    }
  }

  std::size_t words_;
  std::vector<std::size_t> first_;
  std::vector<Id> outputs_;
  std::vector<Word> masks_;
};

// What was answered at each node, as numbers of `Otherwise`.
struct Answered {
  std::vector<std::size_t> first;  // of a node; one more than there are nodes
  std::vector<std::size_t> what;

  Answered(const HistoryTree& tree, std::span<const Id> query, std::span<const Id> output,
           const Otherwise& otherwise)
      : first(index(tree.size()) + 1, 0) {
    for (std::size_t row = 0; row < query.size(); ++row)
      if (query[row] != none) ++first[index(tree.node_of_row[row])];
    std::size_t total = 0;
    for (std::size_t& entry : first) entry = total += entry;
    what.resize(total);
    for (std::size_t row = 0; row < query.size(); ++row)
      if (query[row] != none)
        what[--first[index(tree.node_of_row[row])]] = otherwise.number(query[row], output[row]);
  }
};

class Converging {
 public:
  Converging(const HistoryTree& tree, const Otherwise& otherwise, const Answered& answered, const Leads& leads,
             std::size_t words)
      : tree_(tree), otherwise_(otherwise), answered_(answered), leads_(leads), words_(words) {
    // By label and then by state: the states of a node are looked up for one label at a time.
    by_label_.resize(leads.target.size());
    for (std::size_t state = 0; state < index(leads.states); ++state)
      for (std::size_t label = 0; label < index(leads.labels); ++label)
        by_label_[label * index(leads.states) + state] = leads.target[state * index(leads.labels) + label];
    every_state_.assign(words, 0);
    for (Id state = 0; state < leads.states; ++state) every_state_[index(state) / word_bits] |= bit(state);
    states_.assign(index(tree.size()), 0);
    for (std::size_t node = 1; node < states_.size(); ++node) {
      const Id above = states_[index(tree.parent[node])];
      const Id label = tree.label[node];
      states_[node] = above == none || label >= leads.labels ? none : of_label(label)[index(above)];
    }
  }

  Convergence run(Pulse& pulse) {
    std::vector<Id> level{0, 1};  // where nodes of each depth begin
    while (level.back() < tree_.size()) level.push_back(tree_.first_child[index(level.back())]);
    pulse.progress.nodes = tree_.size();
    std::vector<Word> below;
    std::vector<Word> here;
    for (std::size_t depth = level.size() - 1; depth-- > 0;) {
      here.resize(index(level[depth + 1] - level[depth]) * words_);
      for (Id node = level[depth + 1]; node-- > level[depth];) {
        Word* open = &here[index(node - level[depth]) * words_];
        narrow(node, open, below.data(), level[depth + 1]);
        judge(node, open);
        ++pulse.progress.settled;
        pulse.beat();
      }
      std::swap(here, below);
    }
    return out_;
  }

 private:
  [[nodiscard]] const Id* of_label(Id label) const { return &by_label_[index(label) * index(leads_.states)]; }

  // Find the states that are open at a node: its own answers rule out some, and a
  // child those that its label leads to a state which is not open there.
  void narrow(Id node, Word* open, const Word* below, Id first_below) const {
    std::ranges::copy(every_state_, open);
    for (std::size_t at = answered_.first[index(node)]; at < answered_.first[index(node) + 1]; ++at) {
      const Word* other = otherwise_.states(answered_.what[at]);
      for (std::size_t word = 0; word < words_; ++word) open[word] &= ~other[word];
    }
    for (Id child = tree_.first_child[index(node)]; child < tree_.first_child[index(node) + 1]; ++child) {
      const Id label = tree_.label[index(child)];
      if (label < leads_.labels) narrow_by(of_label(label), open, below + index(child - first_below) * words_);
    }
  }

  void narrow_by(const Id* leads, Word* open, const Word* there) const {
    for (std::size_t word = 0; word < words_; ++word) {
      for (Word left = open[word]; left != 0; left &= left - 1) {
        const auto place = static_cast<std::size_t>(std::countr_zero(left));
        const Id led = leads[word * word_bits + place];
        if (led != none && (there[index(led) / word_bits] & bit(led)) == 0) open[word] &= ~(Word{1} << place);
      }
    }
  }

  // Nodes come from the last to the first, so the first one open is judged last.
  void judge(Id node, const Word* open) {
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
  const Otherwise& otherwise_;
  const Answered& answered_;
  Leads leads_;
  std::size_t words_;
  std::vector<Word> every_state_;
  std::vector<Id> by_label_;
  std::vector<Id> states_;
  Convergence out_;
};

}  // namespace

Convergence converge(const HistoryTree& tree, std::span<const Id> query, std::span<const Id> output,
                     const Shown& shown, Id queries, const Leads& leads, Pulse& pulse) {
  const std::size_t words = (index(leads.states) + word_bits - 1) / word_bits;
  const Otherwise otherwise(shown, queries, words);
  const Answered answered(tree, query, output, otherwise);
  return Converging(tree, otherwise, answered, leads, words).run(pulse);
}

}  // namespace resolvent
