#include "latent_search.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

#include "expected_outputs.hpp"
#include "latent_changes.hpp"
#include "latent_evidence.hpp"
#include "machine_growth.hpp"
#include "watch.hpp"

namespace resolvent {
namespace {

constexpr Row grown_on = 60'000;      // rows for the first machine, with labels as recorded
constexpr double grown_effort = 0.2;  // effort for the first machine
constexpr int first_passes = 15;
constexpr int quick_passes = 6;
constexpr int slow_passes = 8;
constexpr int weighing_passes = 3;
constexpr int last_passes = 30;
constexpr std::size_t tried_joins = 3;
constexpr std::size_t tried_splits = 3;
// Initial probabilities that events stay in the same copy of a machine, and copies tried for each.
constexpr std::array stay_probabilities{0.98, 0.5, 0.02};
constexpr int tried_copies = 2;
constexpr double hopeless = 300.0;      // loss of evidence below which smaller machines are not tried
constexpr double hopeless_share = 0.1;  // the same as a share of the evidence gained by memory

struct ScoredModel {
  LatentModel model;  // with deterministic transitions
  LatentCounts counts;
  double log_evidence = 0.0;
};

class LatentSearch {
 public:
  LatentSearch(const Outputs& outputs, const Labels& labels, const LatentOptions& options,
               const std::function<void(Id)>& report)
      : options_(options), report_(report), rows_(outputs, labels, options.kind, options.seed) {}

  void run(const Transitions& from, LatentGrowth& result) {
    result_ = &result;
    rows_.look_at(options_.part);
    const bool looked_at_all = rows_.looks_at_all();
    best_ = weigh(one_state(rows_));
    interruptible_ = true;
    one_state_ = best_.log_evidence;
    keep(best_);
    LatentModel model = initial_model(rows_, from);
    improve(model, first_passes, false);
    shrink(model);
    if (options_.kind.random_starts) grow_starts();
    grow();
    if (!looked_at_all) refit_on_all();
    finish();
  }

 private:
  [[nodiscard]] std::size_t labels() const { return index(options_.kind.labels); }
  [[nodiscard]] std::size_t cells() const { return rows_.cells().size(); }

  LatentCounts improve(LatentModel& model, int passes, bool fixed_transitions) const {
    LatentCounts counts;
    for (int pass = 0; pass < passes; ++pass) {
      if (interruptible_) report_(model.states);
      counts = expect(rows_, model);
      maximize(rows_, counts, fixed_transitions, model);
    }
    return counts;
  }

  // Score the model with deterministic transitions and without unreached states.
  ScoredModel weigh(LatentModel model) const {
    round_transitions(rows_, model);
    LatentCounts counts = improve(model, weighing_passes, true);
    const std::vector<Id> order = reached(rows_, model, counts);
    if (order.size() != index(model.states) || !std::is_sorted(order.begin(), order.end())) {
      model = of_states(rows_, model, order);
      counts = improve(model, 1, true);
    }
    fitted_log_expected_outputs(rows_.cells(), counts.outputs, model.outputs);
    maximize(rows_, counts, true, model);
    counts = expect(rows_, model);
    ScoredModel scored{std::move(model), std::move(counts), 0.0};
    scored.log_evidence = resolvent::log_evidence(rows_, scored.model, scored.counts);
    return scored;
  }

  // Minimum gain in evidence per state.
  [[nodiscard]] double penalty() const {
    double most = one_state_;
    for (const auto& [states, machine] : by_size_) most = std::max(most, machine.log_evidence);
    return min_gain_of_state + min_share_of_gain * (most - one_state_);
  }
  [[nodiscard]] bool is_better(const ScoredModel& first, const ScoredModel& second) const {
    return first.log_evidence - second.log_evidence > penalty() * (first.model.states - second.model.states);
  }

  // Keep a model if it is the best of its size or overall; return whether it is the best overall.
  bool keep(const ScoredModel& scored) {
    const auto [entry, inserted] = by_size_.try_emplace(scored.model.states, scored);
    if (!inserted && scored.log_evidence > entry->second.log_evidence) entry->second = scored;
    if (!is_better(scored, best_)) return false;
    best_ = scored;
    return true;
  }

  // Join the two states that cost least, among those with the most similar outputs.
  LatentModel smaller_by_one(LatentModel model) const {
    const LatentCounts counts = improve(model, 1, false);
    auto pairs = similar_pairs(rows_, model, counts);
    if (pairs.size() > tried_joins) pairs.resize(tried_joins);
    LatentModel next;
    double best = -1e300;
    for (const auto& [first, second] : pairs) {
      LatentModel smaller = joined(rows_, model, counts, first, second);
      const double value = improve(smaller, quick_passes, false).log_likelihood;
      if (value > best) {
        best = value;
        next = std::move(smaller);
      }
    }
    improve(next, slow_passes, false);
    return next;
  }

  // Join states one pair at a time, and score each result. Return whether one of them is the best.
  bool shrink(LatentModel model) {
    bool better = false;
    while (true) {
      const ScoredModel scored = weigh(model);
      better |= keep(scored);
      const double most = best_.log_evidence;
      if (scored.log_evidence < most - hopeless - hopeless_share * (most - one_state_)) return better;
      if (scored.model.states < model.states) model = softened(rows_, scored.model);
      if (model.states < 3) return better;
      model = smaller_by_one(model);
    }
  }

  // Split states of the best model while that improves it.
  void grow() {
    while (best_.model.states < options_.most_states) {
      const LatentModel model = softened(rows_, best_.model);
      std::vector<std::pair<double, LatentModel>> tried;
      const std::size_t states = index(model.states);
      for (std::size_t label = 0; label < labels(); ++label) {
        if (static_cast<Id>(label) == options_.kind.silence) continue;
        for (std::size_t state = 0; state < states; ++state) {
          if (times_read(best_.counts, states, label, state) < 2.0) continue;
          LatentModel larger = split(rows_, model, label, state, index(target(model, label, state)));
          const double value = improve(larger, 2, false).log_likelihood;
          tried.emplace_back(value, std::move(larger));
        }
      }
      std::stable_sort(tried.begin(), tried.end(),
                       [](const auto& first, const auto& second) { return first.first > second.first; });
      if (tried.size() > tried_splits) tried.resize(tried_splits);
      bool better = false;
      for (auto& [value, larger] : tried) {
        improve(larger, slow_passes, false);
        better |= keep(weigh(larger));
      }
      if (!better) return;
    }
  }

  // Try two copies of the best model: an episode begins in one and stays there. Similar states of both are
  // joined again.
  void grow_starts() {
    for (bool better = true; better;) {
      better = false;
      const LatentModel model = softened(rows_, best_.model);
      const std::size_t before = index(model.states);
      if (2 * before > index(most_latent_states)) return;
      LatentModel best;
      double most = -1e300;
      for (const double stay_probability : stay_probabilities)
        for (int copy = 0; copy < tried_copies; ++copy) {
          LatentModel larger =
              doubled(rows_, model, stay_probability, options_.seed + static_cast<std::uint64_t>(copy));
          const double value = improve(larger, first_passes, false).log_likelihood;
          if (value > most) {
            most = value;
            best = std::move(larger);
          }
        }
      improve(best, first_passes, false);
      better = shrink(std::move(best));
    }
  }

  // Refit models of about the best size on all traces.
  void refit_on_all() {
    const auto some = by_size_;
    const Id best_size = best_.model.states;
    rows_.look_at(rows_.all_rows());
    by_size_.clear();
    best_ = weigh(one_state(rows_));
    one_state_ = best_.log_evidence;
    keep(best_);
    for (const auto& [states, machine] : some) {
      if (std::abs(states - best_size) > 1 || states == 1) continue;
      LatentModel model = softened(rows_, machine.model);
      improve(model, slow_passes, false);
      keep(weigh(std::move(model)));
    }
    while (best_.model.states > 2 && keep(weigh(smaller_by_one(softened(rows_, best_.model))))) {
    }
  }

  // The label error rates converge slowly, since most errors have little effect.
  void finish() {
    improve(best_.model, last_passes, true);
    best_.counts = expect(rows_, best_.model);
    best_.log_evidence = std::max(best_.log_evidence, resolvent::log_evidence(rows_, best_.model, best_.counts));
    write_result();
  }

 public:
  // The most likely true labels and states under the best model.
  [[nodiscard]] ViterbiPath path(const Outputs& outputs, const Labels& labels) const {
    const OutputCells cells = varying_outputs(outputs);
    return viterbi_path(options_.kind, best_.model, cells.of_row, labels);
  }

  // Write the best model so far to the result.
  void write_result() const {
    const std::size_t states = index(best_.model.states);
    LatentMachine machine;
    machine.states = best_.model.states;
    machine.starts = best_.model.starts;
    machine.shares = best_.model.shares;
    machine.labels = best_.model.labels;
    machine.log_evidence = best_.log_evidence;
    machine.noise = deviating_share();
    for (std::size_t state = 0; state < states; ++state)
      for (std::size_t label = 0; label < labels(); ++label) machine.transitions.push_back(target_of(label, state));
    result_->best = std::move(machine);
    result_->one_state = one_state_;
    result_->sizes.clear();
    for (const auto& [size, scored] : by_size_) result_->sizes[size] = scored.log_evidence;
    result_->sizes[best_.model.states] = best_.log_evidence;
  }

 private:
  // None if a label is never read in a state. "No event" is always a loop.
  [[nodiscard]] Id target_of(std::size_t label, std::size_t state) const {
    if (static_cast<Id>(label) == options_.kind.silence) return static_cast<Id>(state);
    const bool is_read = times_read(best_.counts, index(best_.model.states), label, state) >= half_read;
    return is_read ? target(best_.model, label, state) : none;
  }

  [[nodiscard]] double deviating_share() const {
    double off = 0.0;
    for (std::size_t state = 0; state < index(best_.model.states); ++state)
      for (std::size_t query = 0; query < rows_.cells().queries(); ++query) {
        double total = 0.0;
        double main = 0.0;
        for (Id cell = rows_.cells().first[query]; cell < rows_.cells().first[query + 1]; ++cell) {
          total += best_.counts.outputs[state * cells() + index(cell)];
          main = std::max(main, best_.counts.outputs[state * cells() + index(cell)]);
        }
        off += total - main;
      }
    return off / std::max(static_cast<double>(rows_.output_rows()), 1.0);
  }

  const LatentOptions& options_;
  const std::function<void(Id)>& report_;
  LatentRows rows_;
  bool interruptible_ = false;  // not before there is a first model
  LatentGrowth* result_ = nullptr;
  ScoredModel best_;
  double one_state_ = 0.0;
  std::map<Id, ScoredModel> by_size_;
};

}  // namespace

LatentGrowth grow_latent_machine(const Outputs& outputs, const Labels& labels, const LatentOptions& options,
                                 const std::function<void(Id)>& report) {
  LatentGrowth result;
  LatentSearch search(outputs, labels, options, report);
  // A machine that takes the labels as recorded has extra states for label errors, which are joined later.
  const Subsample part = subsample_traces(outputs, labels, grown_on, options.seed);
  GrowthOptions growing{options.seed, grown_effort * options.effort, options.most_states, grown_on,
                        std::vector<std::uint8_t>(index(options.kind.labels))};
  if (options.kind.silence != none) growing.quiet[index(options.kind.silence)] = 1;
  const auto listen = [&](const Progress& now) {
    report(now.red);
    return true;
  };
  const Growth grown = grow_machine(part.outputs(), part.labels(), growing, listen, 0.0);
  try {
    search.run(grown.best.transitions, result);
  } catch (const TimeLimitReached&) {
    search.write_result();
    result.finished = false;
  }
  result.path = search.path(outputs, labels);
  return result;
}

}  // namespace resolvent
