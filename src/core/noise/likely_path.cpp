#include "likely_path.hpp"

#include <algorithm>
#include <cstddef>

#include "elementary.hpp"
#include "parallel.hpp"

namespace resolvent {
namespace {

constexpr double impossible = -1e300;
constexpr std::size_t parts = 2;

double log_of(double chance) { return chance > 0.0 ? natural_log(chance) : impossible; }

class PathFinder {
 public:
  PathFinder(const HiddenKind& kind, const HiddenModel& model)
      : kind_(kind), states_(index(model.states)), width_(index(kind.labels)), moves_(states_ * width_),
        answers_(model.chances.size()) {
    const std::size_t cells = model.chances.size() / states_;
    for (std::size_t at = 0; at < answers_.size(); ++at)
      answers_[at % cells * states_ + at / cells] = log_of(model.chances[at]);
    for (std::size_t label = 0; label < width_; ++label)
      for (std::size_t state = 0; state < states_; ++state) {
        const auto first = model.moves.begin() + static_cast<std::ptrdiff_t>((label * states_ + state) * states_);
        const auto best = std::max_element(first, first + model.states);
        moves_[label * states_ + state] = static_cast<std::size_t>(best - first);
      }
    for (const double start : model.starts) starts_.push_back(log_of(start));
    for (const double chance : true_label_chances(kind, model.labels, model.shares)) labels_.push_back(log_of(chance));
  }

  void find(const Labels& labels, std::span<const Id> cells, std::size_t trace, LikelyPath& path) const {
    const auto first = static_cast<std::size_t>(labels.offsets[trace]);
    const auto last = static_cast<std::size_t>(labels.offsets[trace + 1]);
    if (first == last) return;
    std::vector<double> best = starts_;
    std::vector<double> next(states_);
    std::vector<std::pair<Id, Id>> from((last - first) * states_);  // label, and state before
    for (std::size_t row = first; row < last; ++row) {
      std::pair<Id, Id>* back = &from[(row - first) * states_];
      const Id recorded = labels.beta[row];
      if (recorded == none) {
        next = best;
        for (std::size_t state = 0; state < states_; ++state) back[state] = {none, static_cast<Id>(state)};
      } else {
        std::fill(next.begin(), next.end(), impossible);
        read(index(recorded), index(recorded), best, next, back);  // first: of equal ones, what is recorded
        for (std::size_t label = 0; label < width_; ++label)
          if (label != index(recorded)) read(index(recorded), label, best, next, back);
      }
      if (cells[row] != none)
        for (std::size_t state = 0; state < states_; ++state)
          next[state] += answers_[index(cells[row]) * states_ + state];
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
    const double chance = labels_[recorded * width_ + label];
    if (chance == impossible) return;
    for (std::size_t state = 0; state < states_; ++state) {
      const std::size_t target = moves_[label * states_ + state];
      if (best[state] + chance <= next[target]) continue;
      next[target] = best[state] + chance;
      back[target] = {static_cast<Id>(label), static_cast<Id>(state)};
    }
  }

  HiddenKind kind_;
  std::size_t states_;
  std::size_t width_;
  std::vector<std::size_t> moves_;  // [label, state]
  std::vector<double> answers_;     // [cell, state]
  std::vector<double> starts_;
  std::vector<double> labels_;  // [recorded, true]
};

}  // namespace

LikelyPath likely_path(const HiddenKind& kind, const HiddenModel& model, std::span<const Id> cells,
                       const Labels& labels) {
  LikelyPath path{std::vector<Id>(cells.size(), none), std::vector<Id>(cells.size(), none)};
  const PathFinder finder(kind, model);
  const std::size_t traces = labels.offsets.size() - 1;
  in_parallel(parts, [&](std::size_t part) {
    for (std::size_t trace = traces * part / parts; trace < traces * (part + 1) / parts; ++trace)
      finder.find(labels, cells, trace, path);
  });
  return path;
}

}  // namespace resolvent
