#include "table_replay.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "arithmetic.hpp"
#include "noisy_samples.hpp"

namespace resolvent {
namespace {

constexpr double min_gain = 0.01;      // minimum gain of a change
constexpr double polish_slack = 20.0;  // how far the score may drop during a change
constexpr double settle_slack = 10.0;
constexpr double coolest = 0.01;  // relative to the initial heat

}  // namespace

NoisyTree::NoisyTree(const HistoryTree& tree, const OutputCells& informative, Id label_count)
    : histories(tree), cells(informative), labels(label_count), first_edge(index(label_count) + 1) {
  std::vector<std::size_t> rows;
  const auto first = rows_by_node(tree, rows);
  for (std::size_t node = 0; node + 1 < first.size(); ++node) {
    first_output.push_back(output.size());
    for (std::size_t at = first[node]; at < first[node + 1]; ++at)
      if (const Id cell = cells.of_row[rows[at]]; cell != none) output.push_back(cell);
    // Sorted by code, so that the order of traces does not matter.
    std::sort(output.begin() + static_cast<std::ptrdiff_t>(first_output.back()), output.end());
  }
  first_output.push_back(output.size());
  for (std::size_t node = 1; node < tree.label.size(); ++node) ++first_edge[index(tree.label[node]) + 1];
  for (std::size_t label = 0; label + 1 < first_edge.size(); ++label) first_edge[label + 1] += first_edge[label];
  edge.resize(tree.label.size() - 1);
  std::vector<std::size_t> next(first_edge.begin(), first_edge.end() - 1);
  for (std::size_t node = 1; node < tree.label.size(); ++node)
    edge[next[index(tree.label[node])]++] = static_cast<Id>(node);
}

SearchScore::SearchScore(const OutputCells& cells, const NoiseShape& noise) {
  std::map<Id, Id> longest;  // by number of outputs: highest count of one output
  std::int64_t most_queried = 0;
  for (std::size_t query = 0; query < cells.queries(); ++query) {
    most_queried = std::max(most_queried, cells.total(query));
    Id& most = longest[cells.outputs(query)];
    for (Id cell = cells.first[query]; cell < cells.first[query + 1]; ++cell)
      most = std::max(most, static_cast<Id>(cells.count[index(cell)]));
  }
  std::map<Id, std::size_t> begins;
  for (const auto& [outputs, most] : longest) {
    begins[outputs] = tables_.size();
    const double base = noise.strength * noise.share / outputs;
    for (Id n = 0; n <= most; ++n) tables_.push_back(natural_log(base + n));
    double main = 0.0;
    for (Id n = 0; n <= most; ++n) {
      tables_.push_back(main);
      main += natural_log((base + n + noise.strength * (1.0 - noise.share)) / (base + n));
    }
    double others = 0.0;
    for (Id n = 0; n <= most; ++n) {
      tables_.push_back(others);
      others += natural_log(base + n);
    }
  }
  for (std::int64_t n = 0; n <= most_queried; ++n) {
    any_.push_back(natural_log(noise.strength + static_cast<double>(n)));
    anys_.push_back(anys_.back() + any_.back());
  }
  cell_.reserve(cells.size());
  for (std::size_t query = 0; query < cells.queries(); ++query) {
    const Id outputs = cells.outputs(query);
    const std::size_t begin = begins[outputs];
    const auto of = cells.count.begin();
    const auto most = std::max_element(of + cells.first[query], of + cells.first[query + 1]);
    const auto most_frequent = static_cast<double>(*most);
    for (Id cell = cells.first[query]; cell < cells.first[query + 1]; ++cell)
      cell_.push_back({begin, begin + index(longest[outputs]) + 1, begin + 2 * (index(longest[outputs]) + 1),
                       natural_log((static_cast<double>(cells.count[index(cell)]) + 0.5) / (most_frequent + 0.5))});
  }
}

TableReplay::TableReplay(const NoisyTree& tree, const SearchScore& score)
    : tree_(tree), value_(score), state_of_(tree.histories.parent.size()), moved_at_(tree.histories.parent.size()) {}

double TableReplay::best_main(std::size_t query, const Id* counts) const {
  double best = -std::numeric_limits<double>::infinity();
  for (auto cell = index(tree_.cells.first[query]); cell < index(tree_.cells.first[query + 1]); ++cell)
    best = std::max(best, value_.main(cell, counts[cell]));
  return best;
}

// Replace the score of a main output, and log the previous one for undo.
void TableReplay::set_main(double& main, double value) {
  replaced_.emplace_back(static_cast<std::size_t>(&main - main_.data()), main);
  score_ += value - main;
  main = value;
}

void TableReplay::add(Id node) {
  const std::size_t state = index(state_of_[index(node)]);
  Id* counts = &counts_[state * tree_.cells.size()];
  Id* query_counts = &query_count_[state * tree_.cells.queries()];
  double* main = &main_[state * tree_.cells.queries()];
  for (std::size_t at = tree_.first_output[index(node)]; at < tree_.first_output[index(node) + 1]; ++at) {
    const std::size_t cell = index(tree_.output[at]);
    const std::size_t query = index(tree_.cells.query[cell]);
    score_ += value_.other(cell, counts[cell]) - value_.any(query_counts[query]);
    ++counts[cell];
    if (query_counts[query]++ == 0)
      set_main(main[query], best_main(query, counts));
    else if (const double now = value_.main(cell, counts[cell]); now > main[query])
      set_main(main[query], now);
  }
}

void TableReplay::remove(Id node) {
  const std::size_t state = index(state_of_[index(node)]);
  Id* counts = &counts_[state * tree_.cells.size()];
  Id* query_counts = &query_count_[state * tree_.cells.queries()];
  double* main = &main_[state * tree_.cells.queries()];
  for (std::size_t at = tree_.first_output[index(node)]; at < tree_.first_output[index(node) + 1]; ++at) {
    const std::size_t cell = index(tree_.output[at]);
    const std::size_t query = index(tree_.cells.query[cell]);
    const bool was_main = value_.main(cell, counts[cell]) >= main[query];
    --counts[cell];
    --query_counts[query];
    score_ -= value_.other(cell, counts[cell]) - value_.any(query_counts[query]);
    if (query_counts[query] == 0)
      set_main(main[query], 0.0);
    else if (was_main)
      set_main(main[query], best_main(query, counts));
  }
}

void TableReplay::put(Id node, Id state) {
  if (!tree_.has_outputs(index(node))) {
    state_of_[index(node)] = state;
    return;
  }
  remove(node);
  state_of_[index(node)] = state;
  add(node);
}

// Undo the last change of the table.
void TableReplay::undo(double score_before) {
  for (const auto& [node, was_in] : moved_) {
    const std::size_t from = index(state_of_[index(node)]);
    const std::size_t to = index(was_in);
    state_of_[index(node)] = was_in;
    for (std::size_t at = tree_.first_output[index(node)]; at < tree_.first_output[index(node) + 1]; ++at) {
      const std::size_t cell = index(tree_.output[at]);
      const std::size_t query = index(tree_.cells.query[cell]);
      --counts_[from * tree_.cells.size() + cell];
      ++counts_[to * tree_.cells.size() + cell];
      --query_count_[from * tree_.cells.queries() + query];
      ++query_count_[to * tree_.cells.queries() + query];
    }
  }
  for (auto last = replaced_.rbegin(); last != replaced_.rend(); ++last) main_[last->first] = last->second;
  score_ = score_before;  // exactly, without rounding errors
}

void TableReplay::start(const Transitions& transitions, Watch& watch) {
  transitions_ = transitions;
  states_ = static_cast<Id>(transitions.size() / index(tree_.labels));
  counts_.assign(index(states_) * tree_.cells.size(), 0);
  query_count_.assign(index(states_) * tree_.cells.queries(), 0);
  main_.assign(index(states_) * tree_.cells.queries(), 0.0);
  score_ = 0.0;
  state_of_[0] = 0;
  for (Id node = 0; node < tree_.histories.size(); ++node) {
    watch.tick();
    if (node > 0) {
      const Id before = state_of_[index(tree_.histories.parent[index(node)])];
      state_of_[index(node)] = transitions_[index(before * tree_.labels + tree_.histories.label[index(node)])];
    }
    add(node);
    replaced_.clear();  // no undo is needed here
  }
}

bool TableReplay::try_transition(Id state, Id label, Id target, double at_least, double slack, Watch& watch) {
  Id& entry = transitions_[index(state * tree_.labels + label)];
  const Id before = entry;
  const double score_before = score_;
  entry = target;
  ++changes_;
  moved_.clear();
  replaced_.clear();
  const auto shift = [&](Id node, Id to) {
    moved_.emplace_back(node, state_of_[index(node)]);
    moved_at_[index(node)] = changes_;
    put(node, to);
    watch.tick();
  };
  for (std::size_t at = tree_.first_edge[index(label)]; at < tree_.first_edge[index(label) + 1]; ++at) {
    const Id child = tree_.edge[at];
    const auto parent = index(tree_.histories.parent[index(child)]);
    // The nodes below a moved node were moved with it.
    if (state_of_[parent] != state || moved_at_[parent] == changes_) continue;
    std::size_t next = moved_.size();
    shift(child, target);
    for (; next < moved_.size(); ++next) {
      const auto node = index(moved_[next].first);
      const Id* row = &transitions_[index(state_of_[node] * tree_.labels)];
      for (Id below = tree_.histories.first_child[node]; below < tree_.histories.first_child[node + 1]; ++below) {
        const Id to = row[tree_.histories.label[index(below)]];
        if (to != state_of_[index(below)]) shift(below, to);
      }
    }
    if (score_ < at_least - slack) break;
  }
  if (score_ >= at_least) return true;
  entry = before;
  undo(score_before);
  return false;
}

void TableReplay::polish(Watch& watch) {
  for (bool better = true; better;) {
    better = false;
    for (Id state = 0; state < states_; ++state)
      for (Id label = 0; label < tree_.labels; ++label) {
        if (tree_.first_edge[index(label)] == tree_.first_edge[index(label) + 1]) continue;
        for (Id target = 0; target < states_; ++target)
          if (target != transitions_[index(state * tree_.labels + label)] &&
              try_transition(state, label, target, score_ + min_gain, polish_slack, watch))
            better = true;
      }
  }
}

void TableReplay::settle(Id first, Id second, Watch& watch) {
  for (bool better = true; better;) {
    better = false;
    for (Id state = 0; state < states_; ++state)
      for (Id label = 0; label < tree_.labels; ++label) {
        if (tree_.first_edge[index(label)] == tree_.first_edge[index(label) + 1]) continue;
        const Id now = transitions_[index(state * tree_.labels + label)];
        if ((now == first || now == second) &&
            try_transition(state, label, now == first ? second : first, score_ + min_gain, settle_slack, watch))
          better = true;
        if (state != first && state != second) continue;
        for (Id target = 0; target < states_; ++target)
          if (target != transitions_[index(state * tree_.labels + label)] &&
              try_transition(state, label, target, score_ + min_gain, settle_slack, watch))
            better = true;
      }
  }
}

void TableReplay::anneal(std::int64_t tries, double hot, Random& random, Watch& watch) {
  std::vector<Id> read;
  for (Id label = 0; label < tree_.labels; ++label)
    if (tree_.first_edge[index(label)] < tree_.first_edge[index(label) + 1]) read.push_back(label);
  if (read.empty() || states_ < 2) return;
  Transitions best = transitions_;
  double most = score_;
  for (std::int64_t tried = 0; tried < tries; ++tried) {
    const double heat = hot * power(coolest, static_cast<double>(tried) / static_cast<double>(tries));
    const Id state = random.below(states_);
    const Id label = read[index(random.below(static_cast<Id>(read.size())))];
    Id target = random.below(states_ - 1);
    if (target >= transitions_[index(state * tree_.labels + label)]) ++target;
    const double at_least = score_ + heat * natural_log(random.unit() + 1e-300);
    if (try_transition(state, label, target, at_least, 2.0 * heat, watch) && score_ > most) {
      most = score_;
      best = transitions_;
    }
  }
  start(best, watch);
}

}  // namespace resolvent
