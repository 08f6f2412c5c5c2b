#include "viterbi.hpp"

#include <algorithm>
#include <cstddef>

#include "arithmetic.hpp"
#include "parallel.hpp"

namespace resolvent {
namespace {

constexpr double impossible = -1e300;
constexpr std::size_t parts = 2;

double log_of(double probability) { return probability > 0.0 ? natural_log(probability) : impossible; }

class Viterbi {
 public:
  Viterbi(const LatentKind& kind, const LatentModel& model)
      : kind_(kind),
        states_(index(model.states)),
        width_(index(kind.labels)),
        transitions_(states_ * width_),
        outputs_(model.probabilities.size()) {
    const std::size_t cells = model.probabilities.size() / states_;
    for (std::size_t at = 0; at < outputs_.size(); ++at)
      outputs_[at % cells * states_ + at / cells] = log_of(model.probabilities[at]);
    for (std::size_t label = 0; label < width_; ++label)
      for (std::size_t state = 0; state < states_; ++state) {
        const auto first = model.transitions.begin() + static_cast<std::ptrdiff_t>((label * states_ + state) * states_);
        const auto best = std::max_element(first, first + model.states);
        transitions_[label * states_ + state] = static_cast<std::size_t>(best - first);
      }
    for (const double start : model.starts) starts_.push_back(log_of(start));
    for (const double probability : true_label_probabilities(kind, model.labels, model.shares))
      labels_.push_back(log_of(probability));
  }

  void find(const Labels& labels, std::span<const Id> cells, std::size_t trace, ViterbiPath& path) const {
    const auto first = static_cast<std::size_t>(labels.offsets[trace]);
    const auto last = static_cast<std::size_t>(labels.offsets[trace + 1]);
    if (first == last) return;
    std::vector<double> best = starts_;
    std::vector<double> next(states_);
    std::vector<std::pair<Id, Id>> from((last - first) * states_);  // label, previous state
    for (std::size_t row = first; row < last; ++row) {
      std::pair<Id, Id>* back = &from[(row - first) * states_];
      const Id recorded = labels.beta[row];
      if (recorded == none) {
        next = best;
        for (std::size_t state = 0; state < states_; ++state) back[state] = {none, static_cast<Id>(state)};
      } else {
        std::fill(next.begin(), next.end(), impossible);
        read(index(recorded), index(recorded), best, next, back);  // first, so that ties keep the recorded label
        for (std::size_t label = 0; label < width_; ++label)
          if (label != index(recorded)) read(index(recorded), label, best, next, back);
      }
      if (cells[row] != none)
        for (std::size_t state = 0; state < states_; ++state)
          next[state] += outputs_[index(cells[row]) * states_ + state];
      const double most = *std::max_element(next.begin(), next.end());
      for (double& each : next) each = std::max(each - most, impossible);
      std::swap(best, next);
    }
    auto state = static_cast<Id>(std::max_element(best.begin(), best.end()) - best.begin());
    for (std::size_t row = last; row-- > first;) {
      path.state[row] = state;
      const auto [label, before] = from[(row - first) * states_ + index(state)];
      path.label[row] = label;
      state = before;
    }
  }

 private:
  void read(std::size_t recorded, std::size_t label, const std::vector<double>& best, std::vector<double>& next,
            std::pair<Id, Id>* back) const {
    const double probability = labels_[recorded * width_ + label];
    if (probability == impossible) return;
    for (std::size_t state = 0; state < states_; ++state) {
      const std::size_t target = transitions_[label * states_ + state];
      if (best[state] + probability <= next[target]) continue;
      next[target] = best[state] + probability;
      back[target] = {static_cast<Id>(label), static_cast<Id>(state)};
    }
  }

  LatentKind kind_;
  std::size_t states_;
  std::size_t width_;
  std::vector<std::size_t> transitions_;  // [label, state]
  std::vector<double> outputs_;           // [cell, state]
  std::vector<double> starts_;
  std::vector<double> labels_;  // [recorded, true]
};

}  // namespace

ViterbiPath viterbi_path(const LatentKind& kind, const LatentModel& model, std::span<const Id> cells,
                         const Labels& labels) {
  ViterbiPath path{std::vector<Id>(cells.size(), none), std::vector<Id>(cells.size(), none)};
  const Viterbi finder(kind, model);
  const std::size_t traces = labels.offsets.size() - 1;
  in_parallel(parts, [&](std::size_t part) {
    for (std::size_t trace = traces * part / parts; trace < traces * (part + 1) / parts; ++trace)
      finder.find(labels, cells, trace, path);
  });
  return path;
}

}  // namespace resolvent
