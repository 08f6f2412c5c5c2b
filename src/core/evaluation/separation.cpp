#include "separation.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace resolvent {
namespace {

struct Pair {
  Id first;
  Id second;
};

class SeparationSearch {
 public:
  SeparationSearch(const TransitionTable& table, Watch& watch) : table_(table), watch_(watch) {
    const std::size_t pairs = index(table.states) * (index(table.states) - 1) / 2;
    out_.depth.assign(pairs, none);
    out_.label.assign(pairs, none);
    out_.queries.assign(pairs, 0);
    out_.support.assign(pairs, 0);
    out_.lower.assign(pairs, none);
    out_.higher.assign(pairs, none);
  }

  void compare_outputs(const ObservedOutputs& observed, std::span<const Row> count, std::span<const Row> step) {
    std::vector<Row> steps(out_.depth.size(), std::numeric_limits<Row>::max());
    watch_.progress.nodes = static_cast<Row>(observed.query.size());
    for (std::size_t first = 0, last = 0; first < observed.query.size(); first = last) {
      while (last < observed.query.size() && observed.query[last] == observed.query[first]) ++last;
      for (std::size_t a = first; a < last; ++a) {
        for (std::size_t b = a + 1; b < last; ++b) {
          if (observed.output[a] == observed.output[b]) continue;
          const std::size_t pair = number(observed.state[a], observed.state[b]);
          ++out_.queries[pair];
          out_.support[pair] += count[a] + count[b];
          if (step[a] + step[b] >= steps[pair]) continue;
          steps[pair] = step[a] + step[b];
          out_.lower[pair] = static_cast<Id>(a);
          out_.higher[pair] = static_cast<Id>(b);
        }
        ++watch_.progress.settled;
        watch_.tick();
      }
    }
    for (std::size_t pair = 0; pair < out_.depth.size(); ++pair)
      if (out_.queries[pair] > 0) out_.depth[pair] = 0;
  }

  // Search breadth first, backwards from the pairs with different outputs for the same query.
  void extend() {
    std::vector<Pair> pairs = one_label_before();
    if (!pairs.empty()) index_sources();
    for (Id depth = 1; !pairs.empty(); ++depth) {
      for (const Pair pair : pairs) set_depth(pair, depth);
      pairs = before(pairs);
    }
  }

  Separations take() { return std::move(out_); }

 private:
  [[nodiscard]] std::size_t number(Id first, Id second) const { return pair_number(first, second, table_.states); }
  [[nodiscard]] Id target_of(Id state, Id label) const {
    return table_.target[index(state) * index(table_.labels) + index(label)];
  }
  [[nodiscard]] std::size_t source(Id label, Id state) const {
    return index(label) * index(table_.states) + index(state);
  }

  // Return the number of the pair that a label leads to, or the number of pairs if there is none.
  [[nodiscard]] std::size_t after(Pair pair, Id label) const {
    const Id first = target_of(pair.first, label);
    const Id second = target_of(pair.second, label);
    return first == none || second == none || first == second ? out_.depth.size() : number(first, second);
  }

  std::vector<Pair> one_label_before() {
    std::vector<Pair> pairs;
    for (Id first = 0; first < table_.states; ++first) {
      for (Id second = first + 1; second < table_.states; ++second) {
        const std::size_t pair = number(first, second);
        for (Id label = 0; out_.depth[pair] == none && label < table_.labels; ++label) {
          const std::size_t target = after({first, second}, label);
          watch_.tick();
          if (target == out_.depth.size() || out_.depth[target] != 0) continue;
          out_.label[pair] = label;
          pairs.push_back({first, second});
          break;
        }
      }
    }
    return pairs;
  }

  // For each label and target, list the source states.
  void index_sources() {
    first_source_.assign(index(table_.labels) * index(table_.states) + 1, 0);
    for (int pass = 0; pass < 2; ++pass) {
      for (Id state = table_.states; state-- > 0;) {
        for (Id label = 0; label < table_.labels; ++label) {
          const Id target = target_of(state, label);
          if (target == none) continue;
          if (pass == 0)
            ++first_source_[source(label, target)];
          else
            sources_[--first_source_[source(label, target)]] = state;
        }
      }
      if (pass > 0) continue;
      std::size_t total = 0;
      for (std::size_t& entry : first_source_) entry = total += entry;
      sources_.resize(total);
    }
  }

  [[nodiscard]] std::span<const Id> sources(Id label, Id state) const {
    const std::size_t at = source(label, state);
    return std::span(sources_).subspan(first_source_[at], first_source_[at + 1] - first_source_[at]);
  }

  std::vector<Pair> before(const std::vector<Pair>& targets) {
    std::vector<Pair> pairs;
    for (const Pair pair : targets) {
      for (Id label = 0; label < table_.labels; ++label) {
        watch_.tick();
        for (const Id first : sources(label, pair.first)) {
          for (const Id second : sources(label, pair.second)) {
            const std::size_t at = number(first, second);
            if (out_.depth[at] != none) continue;
            if (out_.label[at] == none) pairs.push_back({first, second});
            if (out_.label[at] == none || label < out_.label[at]) out_.label[at] = label;
          }
        }
      }
    }
    return pairs;
  }

  void set_depth(Pair pair, Id depth) {
    const std::size_t at = number(pair.first, pair.second);
    const std::size_t target = after(pair, out_.label[at]);
    out_.depth[at] = depth;
    out_.queries[at] = out_.queries[target];
    out_.support[at] = out_.support[target];
    out_.lower[at] = out_.lower[target];
    out_.higher[at] = out_.higher[target];
  }

  TransitionTable table_;
  Watch& watch_;
  Separations out_;
  std::vector<std::size_t> first_source_;
  std::vector<Id> sources_;
};

}  // namespace

std::size_t pair_number(Id first, Id second, Id states) {
  const std::size_t lower = index(std::min(first, second));
  const std::size_t higher = index(std::max(first, second));
  return lower * (2 * index(states) - lower - 1) / 2 + higher - lower - 1;
}

Separations separate(const ObservedOutputs& observed, std::span<const Row> count, std::span<const Row> step,
                     const TransitionTable& table, Watch& watch) {
  SeparationSearch search(table, watch);
  search.compare_outputs(observed, count, step);
  search.extend();
  return search.take();
}

}  // namespace resolvent
