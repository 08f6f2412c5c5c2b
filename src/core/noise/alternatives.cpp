#include "alternatives.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>

namespace resolvent {
namespace {

constexpr std::size_t tried_targets = 3;
constexpr std::size_t idle_rows = 20'000;  // maximum number of rows read again for a transition of an idle label

class AlternativeSearch {
 public:
  AlternativeSearch(const OutputCells& cells, const Labels& labels, const Transitions& transitions, Id states,
                    const NoiseShape& noise)
      : cells_(cells),
        labels_(labels),
        transitions_(transitions),
        states_(index(states)),
        width_(transitions.size() / index(states)),
        weigh_(cells, noise),
        read_(transitions.size()),
        first_(transitions.size()),
        after_(transitions.size()),
        counts_(index(states) * cells.size()) {
    find_idle_labels();
    walk();
    counts_before_ = counts_;
    read_before_ = read_;
    row_.resize(states_ * cells.queries());
    touched_.resize(row_.size());
    for (std::size_t state = 0; state < states_; ++state)
      for (std::size_t query = 0; query < cells.queries(); ++query)
        row_[state * cells.queries() + query] = weigh_(query, counts_of(state, query));
    log_transitions_ = log_transitions_now(transitions_.size(), none);
  }

  Alternative alternative(std::size_t entry) {
    Alternative best;
    if (read_before_[entry] == 0 || (idle_[entry % width_] != 0 && rows_after(entry) > idle_rows)) return best;
    for (const Id target : best_targets(entry)) {
      const double odds = -gain(entry, target);
      if (best.target == none || odds < best.log_odds) best = {target, odds};
    }
    return best;
  }

 private:
  // Number of rows to read again if a transition has another target.
  [[nodiscard]] std::size_t rows_after(std::size_t entry) const {
    std::size_t rows = 0;
    for (const auto& [row, end] : first_[entry]) rows += end - row;
    return rows;
  }

  // A label is idle if all its transitions are loops or are never read.
  void find_idle_labels() {
    idle_.assign(width_, 1);
    for (std::size_t entry = 0; entry < transitions_.size(); ++entry)
      if (transitions_[entry] != none && index(transitions_[entry]) != entry / width_) idle_[entry % width_] = 0;
  }

  // Read all labels once: states, counts, the first time each transition is read in a trace, and the
  // outputs between it and the next label that is not idle.
  void walk() {
    state_of_.assign(labels_.beta.size(), 0);
    std::vector<std::size_t> last_trace(transitions_.size(), labels_.offsets.size());
    for (std::size_t trace = 0; trace + 1 < labels_.offsets.size(); ++trace) {
      std::size_t state = 0;
      std::size_t since = transitions_.size();  // last transition of a label that is not idle
      std::size_t idled = transitions_.size();  // last transition, if its label is idle
      const auto end = static_cast<std::size_t>(labels_.offsets[trace + 1]);
      for (auto row = static_cast<std::size_t>(labels_.offsets[trace]); row < end; ++row) {
        if (const Id label = labels_.beta[row]; label != none) {
          const std::size_t entry = state * width_ + index(label);
          if (transitions_[entry] == none)
            throw std::invalid_argument("a label is read that the machine has no move for");
          ++read_[entry];
          if (idle_[index(label)] == 0) since = entry;
          idled = idle_[index(label)] == 0 ? transitions_.size() : entry;
          if (std::exchange(last_trace[entry], trace) != trace) first_[entry].emplace_back(row, end);
          state = index(transitions_[entry]);
        }
        state_of_[row] = static_cast<Id>(state);
        if (const Id cell = cells_.of_row[row]; cell != none) {
          ++counts_[state * cells_.size() + index(cell)];
          if (since < transitions_.size()) after_[since].push_back(cell);
          if (idled < transitions_.size()) after_[idled].push_back(cell);
        }
      }
    }
    for (auto& cells : after_) std::sort(cells.begin(), cells.end());
  }

  // Return the other targets that the outputs right after the transition support most, and the loop, which
  // has the highest prior probability.
  [[nodiscard]] std::vector<Id> best_targets(std::size_t entry) const {
    std::vector<std::pair<double, Id>> gains;
    for (std::size_t target = 0; target < states_; ++target)
      if (index(transitions_[entry]) != target) gains.emplace_back(-gain_after(entry, target), static_cast<Id>(target));
    std::sort(gains.begin(), gains.end());
    std::vector<Id> best;
    for (std::size_t at = 0; at < std::min(gains.size(), tried_targets); ++at) best.push_back(gains[at].second);
    const auto stays = static_cast<Id>(entry / width_);
    if (transitions_[entry] != stays && std::find(best.begin(), best.end(), stays) == best.end()) best.push_back(stays);
    return best;
  }

  // Log-likelihood gain of a state's rows if it also had the outputs right after the transition.
  [[nodiscard]] double gain_after(std::size_t entry, std::size_t state) const {
    const auto& after = after_[entry];
    double gain = 0.0;
    std::vector<Id> counts;
    for (std::size_t at = 0; at < after.size();) {
      const auto query = index(cells_.query[index(after[at])]);
      const Id first = cells_.first[query];
      const Id* before = counts_of(state, query);
      counts.assign(before, before + cells_.outputs(query));
      for (; at < after.size() && after[at] < cells_.first[query + 1]; ++at) ++counts[index(after[at] - first)];
      gain += weigh_(query, counts.data()) - row_[state * cells_.queries() + query];
    }
    return gain;
  }

  // Log-likelihood gain of all outputs and transitions if the transition had another target.
  double gain(std::size_t entry, Id target) {
    for (const auto& [row, end] : first_[entry]) read_again(entry, target, row, end);
    double gain = log_transitions_now(entry, target) - log_transitions_;
    std::sort(changed_.begin(), changed_.end());
    for (const std::size_t at : changed_) {
      const std::size_t state = at / cells_.queries();
      const std::size_t query = at % cells_.queries();
      gain += weigh_(query, counts_of(state, query)) - row_[at];
      touched_[at] = 0;
      const std::size_t from = state * cells_.size() + index(cells_.first[query]);
      std::copy_n(&counts_before_[from], cells_.outputs(query), &counts_[from]);
    }
    changed_.clear();
    read_ = read_before_;
    return gain;
  }

  void read_again(std::size_t changed, Id target, std::size_t from, std::size_t end) {
    std::size_t state = index(target);
    for (std::size_t row = from; row < end; ++row) {
      if (const Id label = labels_.beta[row]; row > from && label != none) {
        const std::size_t entry = state * width_ + index(label);
        const std::size_t before = index(state_of_[row - 1]) * width_ + index(label);
        ++read_[entry];
        --read_[before];
        if (entry == changed)
          state = index(target);
        else if (transitions_[entry] != none)
          state = index(transitions_[entry]);
      }
      const auto before = index(state_of_[row]);
      const Id cell = cells_.of_row[row];
      if (cell == none || before == state) continue;
      --counts_[before * cells_.size() + index(cell)];
      ++counts_[state * cells_.size() + index(cell)];
      touch(before, index(cells_.query[index(cell)]));
      touch(state, index(cells_.query[index(cell)]));
    }
  }

  void touch(std::size_t state, std::size_t query) {
    const std::size_t at = state * cells_.queries() + query;
    if (std::exchange(touched_[at], 1) == 0) changed_.push_back(at);
  }

  // Log prior probability of the transitions as they are read now, with one of them changed.
  [[nodiscard]] double log_transitions_now(std::size_t changed, Id target) const {
    std::vector<std::uint8_t> reached(states_);
    reached[0] = 1;
    std::int64_t read = 0;
    std::int64_t staying = 0;
    for (std::size_t entry = 0; entry < transitions_.size(); ++entry) {
      if (read_[entry] == 0) continue;
      const Id to = entry == changed ? target : transitions_[entry];
      const std::size_t reached_state = to == none ? entry / width_ : index(to);
      ++read;
      staying += reached_state == entry / width_;
      reached[reached_state] = 1;
    }
    return log_transitions(std::count(reached.begin(), reached.end(), 1), read, staying);
  }

  [[nodiscard]] const Id* counts_of(std::size_t state, std::size_t query) const {
    return counts_.data() + state * cells_.size() + index(cells_.first[query]);
  }

  const OutputCells& cells_;
  const Labels& labels_;
  const Transitions& transitions_;
  std::size_t states_;
  std::size_t width_;
  RowLikelihood weigh_;
  std::vector<std::uint8_t> idle_;  // by label
  std::vector<Id> state_of_;        // by row
  std::vector<std::int64_t> read_;  // by transition: number of times
  std::vector<std::int64_t> read_before_;
  std::vector<std::vector<std::pair<std::size_t, std::size_t>>> first_;  // by transition: row, end of its trace
  std::vector<std::vector<Id>> after_;                                   // by transition: cells, sorted
  std::vector<Id> counts_;                                               // [state, cell]
  std::vector<Id> counts_before_;
  std::vector<double> row_;  // [state, query]: log-likelihood
  std::vector<std::uint8_t> touched_;
  std::vector<std::size_t> changed_;
  double log_transitions_ = 0.0;
};

}  // namespace

std::vector<Alternative> transition_alternatives(const OutputCells& cells, const Labels& labels,
                                                 const Transitions& transitions, Id states, const NoiseShape& noise) {
  AlternativeSearch search(cells, labels, transitions, states, noise);
  std::vector<Alternative> alternatives;
  alternatives.reserve(transitions.size());
  for (std::size_t entry = 0; entry < transitions.size(); ++entry) alternatives.push_back(search.alternative(entry));
  return alternatives;
}

}  // namespace resolvent
