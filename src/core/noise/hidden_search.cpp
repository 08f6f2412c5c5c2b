#include "hidden_search.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

#include "growing.hpp"
#include "hidden_changes.hpp"
#include "hidden_evidence.hpp"
#include "pulse.hpp"
#include "soft_answers.hpp"

namespace resolvent {
namespace {

constexpr Row grown_on = 60'000;       // rows that the first machine is grown on, with labels as recorded
constexpr double grown_effort = 0.2;   // rounds of that
constexpr int first_passes = 15;
constexpr int quick_passes = 6;
constexpr int slow_passes = 8;
constexpr int weighing_passes = 3;
constexpr int last_passes = 30;
constexpr std::size_t tried_joins = 3;
constexpr std::size_t tried_splits = 3;
constexpr std::array sides_kept{0.98, 0.5, 0.02};  // how often events lead to the same copy of a machine, at first
constexpr int tried_copies = 2;                    // for each of these
constexpr double hopeless = 300.0;     // evidence lost: then even smaller machines are not tried
constexpr double hopeless_share = 0.1; // or this share of what all memory is worth

// As in growing.cpp: a state must be worth this much, and this share of what all memory is worth.
constexpr double least_worth = 8.0;
constexpr double least_share = 0.002;

struct Weighed {
  HiddenModel model;  // every move leads to one state for sure
  HiddenCounts counts;
  double log_evidence = 0.0;
};

class HiddenSearch {
 public:
  HiddenSearch(const Answers& answers, const Labels& labels, const HiddenOptions& options,
               const std::function<void(Id)>& look)
      : options_(options), look_(look), rows_(answers, labels, options.kind, options.seed) {}

  void run(const Moves& from, HiddenGrowth& found) {
    found_ = &found;
    rows_.look_at(options_.part);
    const bool looked_at_all = rows_.looks_at_all();
    best_ = weigh(one_state(rows_));
    hurried_ = true;
    one_state_ = best_.log_evidence;
    keep(best_);
    HiddenModel model = begun(rows_, from);
    improve(model, first_passes, false);
    shrink(model);
    if (options_.kind.random_starts) grow_starts();
    grow();
    if (!looked_at_all) settle_on_all();
    finish();
  }

 private:
  [[nodiscard]] std::size_t labels() const { return index(options_.kind.labels); }
  [[nodiscard]] std::size_t cells() const { return rows_.cells().size(); }

  HiddenCounts improve(HiddenModel& model, int passes, bool fixed_moves) const {
    HiddenCounts counts;
    for (int pass = 0; pass < passes; ++pass) {
      if (hurried_) look_(model.states);
      counts = expect(rows_, model);
      maximise(rows_, counts, fixed_moves, model);
    }
    return counts;
  }

  // With every move leading to the likeliest state alone, and without states that are not reached.
  Weighed weigh(HiddenModel model) const {
    round_moves(rows_, model);
    HiddenCounts counts = improve(model, weighing_passes, true);
    const std::vector<Id> order = reached(rows_, model, counts);
    if (order.size() != index(model.states) || !std::is_sorted(order.begin(), order.end())) {
      model = of_states(rows_, model, order);
      counts = improve(model, 1, true);
    }
    fitted_log_soft_answers(rows_.cells(), counts.answers, model.answers);
    maximise(rows_, counts, true, model);
    counts = expect(rows_, model);
    Weighed weighed{std::move(model), std::move(counts), 0.0};
    weighed.log_evidence = resolvent::log_evidence(rows_, weighed.model, weighed.counts);
    return weighed;
  }

  // What a state must be worth.
  [[nodiscard]] double price() const {
    double most = one_state_;
    for (const auto& [states, machine] : by_size_) most = std::max(most, machine.log_evidence);
    return least_worth + least_share * (most - one_state_);
  }
  [[nodiscard]] bool is_better(const Weighed& one, const Weighed& other) const {
    return one.log_evidence - other.log_evidence > price() * (one.model.states - other.model.states);
  }

  // Keeps a machine if it is the likeliest of its size, or the best; returns whether it is the best.
  bool keep(const Weighed& weighed) {
    const auto [place, fresh] = by_size_.try_emplace(weighed.model.states, weighed);
    if (!fresh && weighed.log_evidence > place->second.log_evidence) place->second = weighed;
    if (!is_better(weighed, best_)) return false;
    best_ = weighed;
    return true;
  }

  // Joins the two states that cost least, of those that answer most alike.
  HiddenModel smaller_by_one(HiddenModel model) const {
    const HiddenCounts counts = improve(model, 1, false);
    auto pairs = alike(rows_, model, counts);
    if (pairs.size() > tried_joins) pairs.resize(tried_joins);
    HiddenModel next;
    double best = -1e300;
    for (const auto& [one, other] : pairs) {
      HiddenModel smaller = joined(rows_, model, counts, one, other);
      const double value = improve(smaller, quick_passes, false).log_likelihood;
      if (value > best) {
        best = value;
        next = std::move(smaller);
      }
    }
    improve(next, slow_passes, false);
    return next;
  }

  // Joins states again and again, and weighs what comes of it. Returns whether a machine was the best.
  bool shrink(HiddenModel model) {
    bool found = false;
    while (true) {
      const Weighed weighed = weigh(model);
      found |= keep(weighed);
      const double most = best_.log_evidence;
      if (weighed.log_evidence < most - hopeless - hopeless_share * (most - one_state_)) return found;
      if (weighed.model.states < model.states) model = softened(rows_, weighed.model);
      if (model.states < 3) return found;
      model = smaller_by_one(model);
    }
  }

  // Splits states of the best machine for as long as that is better.
  void grow() {
    while (best_.model.states < options_.most_states) {
      const HiddenModel model = softened(rows_, best_.model);
      std::vector<std::pair<double, HiddenModel>> tried;
      const std::size_t states = index(model.states);
      for (std::size_t label = 0; label < labels(); ++label) {
        if (static_cast<Id>(label) == options_.kind.silence) continue;
        for (std::size_t state = 0; state < states; ++state) {
          if (made(best_.counts, states, label, state) < 2.0) continue;
          HiddenModel larger = split(rows_, model, label, state, index(target(model, label, state)));
          const double value = improve(larger, 2, false).log_likelihood;
          tried.emplace_back(value, std::move(larger));
        }
      }
      std::stable_sort(tried.begin(), tried.end(),
                       [](const auto& one, const auto& other) { return one.first > other.first; });
      if (tried.size() > tried_splits) tried.resize(tried_splits);
      bool better = false;
      for (auto& [value, larger] : tried) {
        improve(larger, slow_passes, false);
        better |= keep(weigh(larger));
      }
      if (!better) return;
    }
  }

  // Tries the best machine twice side by side: an episode begins in the one or in the other, and
  // stays there. States of both that are alike are joined again.
  void grow_starts() {
    for (bool better = true; better;) {
      better = false;
      const HiddenModel model = softened(rows_, best_.model);
      const std::size_t before = index(model.states);
      if (2 * before > index(most_hidden_states)) return;
      HiddenModel best;
      double most = -1e300;
      for (const double kept : sides_kept)
        for (int copy = 0; copy < tried_copies; ++copy) {
          HiddenModel larger = side_by_side(rows_, model, kept, options_.seed + static_cast<std::uint64_t>(copy));
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

  // Goes on with all traces from the machines that were about the best on some of them.
  void settle_on_all() {
    const auto some = by_size_;
    const Id about = best_.model.states;
    rows_.look_at(rows_.all_rows());
    by_size_.clear();
    best_ = weigh(one_state(rows_));
    one_state_ = best_.log_evidence;
    keep(best_);
    for (const auto& [states, machine] : some) {
      if (std::abs(states - about) > 1 || states == 1) continue;
      HiddenModel model = softened(rows_, machine.model);
      improve(model, slow_passes, false);
      keep(weigh(std::move(model)));
    }
    while (best_.model.states > 2 && keep(weigh(smaller_by_one(softened(rows_, best_.model))))) {
    }
  }

  // How often labels lie is found slowly, since most of what they hide shows little.
  void finish() {
    improve(best_.model, last_passes, true);
    best_.counts = expect(rows_, best_.model);
    best_.log_evidence = std::max(best_.log_evidence, resolvent::log_evidence(rows_, best_.model, best_.counts));
    tell();
  }

 public:
  // The labels and states that traces most likely had under the best machine.
  [[nodiscard]] LikelyPath path(const Answers& answers, const Labels& labels) const {
    const AnswerCells cells = varying_answers(answers);
    return likely_path(options_.kind, best_.model, cells.of_row, labels);
  }

  // Writes the best machine so far into what is found.
  void tell() const {
    const std::size_t states = index(best_.model.states);
    HiddenMachine machine;
    machine.states = best_.model.states;
    machine.starts = best_.model.starts;
    machine.shares = best_.model.shares;
    machine.labels = best_.model.labels;
    machine.log_evidence = best_.log_evidence;
    machine.noise = off_main();
    for (std::size_t state = 0; state < states; ++state)
      for (std::size_t label = 0; label < labels(); ++label)
        machine.moves.push_back(leads_to(label, state));
    found_->best = std::move(machine);
    found_->one_state = one_state_;
    found_->sizes.clear();
    for (const auto& [size, weighed] : by_size_) found_->sizes[size] = weighed.log_evidence;
    found_->sizes[best_.model.states] = best_.log_evidence;
  }

 private:
  // None where a label was never read in a state, as far as one can tell. "No event" always stays.
  [[nodiscard]] Id leads_to(std::size_t label, std::size_t state) const {
    if (static_cast<Id>(label) == options_.kind.silence) return static_cast<Id>(state);
    const bool is_read = made(best_.counts, index(best_.model.states), label, state) >= half_read;
    return is_read ? target(best_.model, label, state) : none;
  }

  [[nodiscard]] double off_main() const {
    double off = 0.0;
    for (std::size_t state = 0; state < index(best_.model.states); ++state)
      for (std::size_t asked = 0; asked < rows_.cells().queries(); ++asked) {
        double given = 0.0;
        double main = 0.0;
        for (Id cell = rows_.cells().first[asked]; cell < rows_.cells().first[asked + 1]; ++cell) {
          given += best_.counts.answers[state * cells() + index(cell)];
          main = std::max(main, best_.counts.answers[state * cells() + index(cell)]);
        }
        off += given - main;
      }
    return off / std::max(static_cast<double>(rows_.answered()), 1.0);
  }

  const HiddenOptions& options_;
  const std::function<void(Id)>& look_;
  HiddenRows rows_;
  bool hurried_ = false;  // not before there is any machine
  HiddenGrowth* found_ = nullptr;
  Weighed best_;
  double one_state_ = 0.0;
  std::map<Id, Weighed> by_size_;
};

}  // namespace

HiddenGrowth grow_hidden_machine(const Answers& answers, const Labels& labels, const HiddenOptions& options,
                                 const std::function<void(Id)>& look) {
  HiddenGrowth found;
  HiddenSearch search(answers, labels, options, look);
  // With labels as recorded: that machine has states for what labels hide, which are joined later.
  const TracePart part = part_of_traces(answers, labels, grown_on, options.seed);
  GrowthOptions growing{options.seed, grown_effort * options.effort, options.most_states, grown_on,
                        std::vector<std::uint8_t>(index(options.kind.labels))};
  if (options.kind.silence != none) growing.quiet[index(options.kind.silence)] = 1;
  const auto listen = [&](const Progress& now) {
    look(now.red);
    return true;
  };
  const Growth grown = grow_machine(part.answers(), part.labels(), growing, listen, 0.0);
  try {
    search.run(grown.best.moves, found);
  } catch (const TimeLimitReached&) {
    search.tell();
    found.finished = false;
  }
  found.path = search.path(answers, labels);
  return found;
}

}  // namespace resolvent
