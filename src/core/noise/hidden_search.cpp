#include "hidden_search.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <tuple>
#include <utility>

#include "growing.hpp"
#include "pulse.hpp"
#include "random.hpp"
#include "soft_answers.hpp"

namespace resolvent {
namespace {

std::size_t index(Id id) { return static_cast<std::size_t>(id); }

constexpr Row grown_on = 60'000;       // rows that the first machine is grown on, with labels as recorded
constexpr double grown_effort = 0.2;   // rounds of that
constexpr double leak = 0.1;           // of each move, to all states, when expectation begins
constexpr LabelNoise first_guess{0.02, 0.002, 0.01};
constexpr double half_read = 0.5;      // what was expected to happen less often did not
constexpr int first_passes = 15;
constexpr int quick_passes = 6;
constexpr int slow_passes = 8;
constexpr int weighing_passes = 3;
constexpr int last_passes = 30;
constexpr std::size_t tried_joins = 3;
constexpr std::size_t tried_splits = 3;
constexpr std::array sides_kept{0.98, 0.5, 0.02};  // how often events lead to the same copy of a machine, at first
constexpr int tried_copies = 2;                    // for each of these
constexpr double likely_move = 0.25;   // moves that states are split along
constexpr double hopeless = 300.0;     // evidence lost: then even smaller machines are not tried
constexpr double hopeless_share = 0.1; // or this share of what all memory is worth

// As in growing.cpp: a state must be worth this much, and this share of what all memory is worth.
constexpr double least_worth = 8.0;
constexpr double least_share = 0.002;

// In advance, labels are taken to lie as often as if one of so many had lied.
constexpr double seldom = 20.0;

// ln of how likely it is that something of unknown probability happened `some` times of `all`, less
// what it is with the probability that is taken.
double unknown_share(double some, double all, double taken) {
  const double summed = std::lgamma(some + 1.0) + std::lgamma(all - some + seldom) - std::lgamma(all + seldom + 1.0) -
                        std::lgamma(seldom) + std::lgamma(seldom + 1.0);
  return summed - some * std::log(std::max(taken, 1e-12)) - (all - some) * std::log1p(-std::min(taken, 1.0 - 1e-12));
}

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
    best_ = weigh(one_state());
    hurried_ = true;
    one_state_ = best_.log_evidence;
    keep(best_);
    HiddenModel model = begun(from);
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

  HiddenModel one_state() const {
    HiddenModel model;
    model.moves.assign(labels(), 1.0);
    model.starts = {1.0};
    model.shares = rows_.shares();
    model.chances.assign(cells(), 1.0);
    return model;
  }

  // Moves that leak, and answers as they are if labels were recorded as they came.
  HiddenModel begun(const Moves& from) const {
    HiddenModel model = one_state();
    const std::size_t states = from.size() / labels();
    model.states = static_cast<Id>(states);
    if (options_.kind.labels_lie) model.labels = first_guess;
    model.starts.assign(states, 0.0);
    model.starts[0] = 1.0;
    model.moves.assign(labels() * states * states, leak / static_cast<double>(states));
    for (std::size_t label = 0; label < labels(); ++label)
      for (std::size_t state = 0; state < states; ++state) {
        double* row = &model.moves[(label * states + state) * states];
        if (static_cast<Id>(label) == options_.kind.silence) std::fill_n(row, states, 0.0);
        const Id target = from[state * labels() + label];
        row[static_cast<Id>(label) == options_.kind.silence || target == none ? state : index(target)] +=
            static_cast<Id>(label) == options_.kind.silence ? 1.0 : 1.0 - leak;
      }
    HiddenCounts counts;
    counts.answers.assign(states * cells(), 0.0);
    const Steps steps = rows_.steps();
    for (std::size_t trace = 0; trace + 1 < steps.offsets.size(); ++trace) {
      std::size_t state = 0;
      for (auto row = static_cast<std::size_t>(steps.offsets[trace]); row < static_cast<std::size_t>(steps.offsets[trace + 1]);
           ++row) {
        const Id label = steps.source[row];
        if (label != none && label < options_.kind.labels && label != options_.kind.silence)
          if (const Id target = from[state * labels() + index(label)]; target != none) state = index(target);
        if (steps.answer[row] != none) ++counts.answers[state * cells() + index(steps.answer[row])];
      }
    }
    fitted_log_soft_answers(rows_.cells(), counts.answers, model.answers);
    for (std::size_t state = 0; state < states; ++state) {
      const auto chances =
          answer_chances(rows_.cells(), std::span(counts.answers).subspan(state * cells(), cells()), model.answers);
      if (state == 0) model.chances.clear();
      model.chances.insert(model.chances.end(), chances.begin(), chances.end());
    }
    return model;
  }

  HiddenCounts improve(HiddenModel& model, int passes, bool fixed_moves) const {
    HiddenCounts counts;
    for (int pass = 0; pass < passes; ++pass) {
      if (hurried_) look_(model.states);
      counts = expect(rows_, model);
      maximise(rows_, counts, fixed_moves, model);
    }
    return counts;
  }

  // Lets every move lead to the likeliest state alone.
  void round_moves(HiddenModel& model) const {
    const std::size_t states = index(model.states);
    for (std::size_t row = 0; row < labels() * states; ++row) {
      const auto first = model.moves.begin() + static_cast<std::ptrdiff_t>(row * states);
      const auto last = first + static_cast<std::ptrdiff_t>(states);
      const auto best = std::max_element(first, last);
      std::fill(first, last, 0.0);
      *best = 1.0;
    }
  }

  static Id target(const HiddenModel& model, std::size_t label, std::size_t state) {
    const std::size_t states = index(model.states);
    const auto first = model.moves.begin() + static_cast<std::ptrdiff_t>((label * states + state) * states);
    return static_cast<Id>(std::max_element(first, first + model.states) - first);
  }

  static double made(const HiddenCounts& counts, std::size_t states, std::size_t label, std::size_t state) {
    const auto first = counts.moves.begin() + static_cast<std::ptrdiff_t>((label * states + state) * states);
    return std::accumulate(first, first + static_cast<std::ptrdiff_t>(states), 0.0);
  }

  // The states that are reached, starts first, then in the order in which labels lead to them.
  std::vector<Id> reached(const HiddenModel& model, const HiddenCounts& counts) const {
    const std::size_t states = index(model.states);
    std::vector<Id> order;
    std::vector<std::uint8_t> known(states);
    for (std::size_t state = 0; state < states; ++state)
      if (counts.starts[state] >= half_read) order.push_back(static_cast<Id>(state));
    std::stable_sort(order.begin(), order.end(),
                     [&](Id one, Id other) { return counts.starts[index(one)] > counts.starts[index(other)]; });
    for (const Id state : order) known[index(state)] = 1;
    for (std::size_t at = 0; at < order.size(); ++at)
      for (std::size_t label = 0; label < labels(); ++label) {
        const std::size_t state = index(order[at]);
        if (made(counts, states, label, state) < half_read) continue;
        const Id next = target(model, label, state);
        if (known[index(next)] == 0) order.push_back(next);
        known[index(next)] = 1;
      }
    return order;
  }

  // The model of some states alone. Moves to others lead nowhere else than where they begin.
  HiddenModel of_states(const HiddenModel& model, const std::vector<Id>& kept) const {
    const std::size_t before = index(model.states);
    const std::size_t states = kept.size();
    HiddenModel smaller = model;
    smaller.states = static_cast<Id>(states);
    smaller.moves.assign(labels() * states * states, 0.0);
    smaller.chances.clear();
    smaller.starts.assign(states, 0.0);
    double started = 0.0;
    for (std::size_t at = 0; at < states; ++at) {
      const auto first = model.chances.begin() + static_cast<std::ptrdiff_t>(index(kept[at]) * cells());
      smaller.chances.insert(smaller.chances.end(), first, first + static_cast<std::ptrdiff_t>(cells()));
      started += smaller.starts[at] = model.starts[index(kept[at])];
      for (std::size_t label = 0; label < labels(); ++label) {
        double* row = &smaller.moves[(label * states + at) * states];
        double all = 0.0;
        for (std::size_t next = 0; next < states; ++next)
          all += row[next] = model.moves[(label * before + index(kept[at])) * before + index(kept[next])];
        if (all < 1e-6) row[at] += 1.0, all += 1.0;
        for (std::size_t next = 0; next < states; ++next) row[next] /= all;
      }
    }
    for (double& start : smaller.starts) start /= started;
    return smaller;
  }

  // How likely all answers are if every move leads to one state: their likelihood under the
  // parameters that were found, and in place of these the sum over all that there are, taken as
  // if what is hidden were known to be as expected (Cheeseman and Stutz).
  Weighed weigh(HiddenModel model) const {
    round_moves(model);
    HiddenCounts counts = improve(model, weighing_passes, true);
    if (const auto order = reached(model, counts); order.size() != index(model.states) || !std::is_sorted(order.begin(), order.end())) {
      model = of_states(model, order);
      counts = improve(model, 1, true);
    }
    fitted_log_soft_answers(rows_.cells(), counts.answers, model.answers);
    maximise(rows_, counts, true, model);
    counts = expect(rows_, model);
    Weighed weighed{std::move(model), std::move(counts), 0.0};
    weighed.log_evidence = evidence(weighed.model, weighed.counts);
    return weighed;
  }

  double evidence(const HiddenModel& model, const HiddenCounts& counts) const {
    const std::size_t states = index(model.states);
    double total = counts.log_likelihood;
    for (std::size_t state = 0; state < states; ++state)
      total += log_soft_answers(rows_.cells(), std::span(counts.answers).subspan(state * cells(), cells()), model.answers);
    for (std::size_t at = 0; at < counts.answers.size(); ++at)
      if (counts.answers[at] > 0.0) total -= counts.answers[at] * std::log(model.chances[at]);
    std::int64_t read = 0;
    std::int64_t staying = 0;
    for (std::size_t label = 0; label < labels(); ++label) {
      for (std::size_t state = 0; state < states; ++state) {
        const bool silent = static_cast<Id>(label) == options_.kind.silence;
        if (!silent && made(counts, states, label, state) < half_read) continue;
        ++read;
        staying += index(target(model, label, state)) == state;
      }
    }
    total += log_moves(model.states, read, staying);
    if (options_.kind.labels_lie) total += label_noise_evidence(model, counts);
    if (options_.kind.random_starts) {
      total += std::lgamma(static_cast<double>(states)) -
               std::lgamma(static_cast<double>(states) + static_cast<double>(rows_.traces()));
      for (std::size_t state = 0; state < states; ++state)
        total += std::lgamma(1.0 + counts.starts[state]) - counts.starts[state] * std::log(std::max(model.starts[state], 1e-300));
    }
    return total;
  }

  double label_noise_evidence(const HiddenModel& model, const HiddenCounts& counts) const {
    double events = 0.0;
    double silent = 0.0;
    for (std::size_t pair = 0; pair < counts.labels.size(); ++pair)
      (static_cast<Id>(pair % labels()) == options_.kind.silence ? silent : events) += counts.labels[pair];
    double total = unknown_share(model.labels.swapped * events, events, model.labels.swapped);
    if (options_.kind.silence != none) {
      total += unknown_share(model.labels.missed * events, events, model.labels.missed);
      total += unknown_share(model.labels.added * silent, silent, model.labels.added);
    }
    return total;
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

  // One state less: all that led to one leads to another.
  HiddenModel joined(const HiddenModel& model, const HiddenCounts& counts, std::size_t one, std::size_t other) const {
    const std::size_t before = index(model.states);
    HiddenModel smaller = model;
    smaller.states = model.states - 1;
    HiddenCounts fewer = counts;
    const auto place = [&](std::size_t state) { return state == other ? one : state > other ? state - 1 : state; };
    const std::size_t states = before - 1;
    fewer.moves.assign(labels() * states * states, 0.0);
    fewer.answers.assign(states * cells(), 0.0);
    fewer.starts.assign(states, 0.0);
    for (std::size_t state = 0; state < before; ++state) {
      fewer.starts[place(state)] += counts.starts[state];
      for (std::size_t cell = 0; cell < cells(); ++cell)
        fewer.answers[place(state) * cells() + cell] += counts.answers[state * cells() + cell];
      for (std::size_t label = 0; label < labels(); ++label)
        for (std::size_t next = 0; next < before; ++next)
          fewer.moves[(label * states + place(state)) * states + place(next)] +=
              counts.moves[(label * before + state) * before + next];
    }
    smaller.moves.resize(fewer.moves.size());
    smaller.starts.assign(states, 0.0);
    smaller.starts[0] = 1.0;
    maximise(rows_, fewer, false, smaller);
    return smaller;
  }

  // Pairs of states by how little is lost if their answers are those of one state.
  std::vector<std::pair<std::size_t, std::size_t>> alike(const HiddenModel& model, const HiddenCounts& counts) const {
    const std::size_t states = index(model.states);
    const auto answers = [&](std::size_t state) { return std::span(counts.answers).subspan(state * cells(), cells()); };
    std::vector<double> alone;
    for (std::size_t state = 0; state < states; ++state)
      alone.push_back(log_soft_answers(rows_.cells(), answers(state), model.answers));
    std::vector<std::tuple<double, std::size_t, std::size_t>> lost;
    std::vector<double> sum(cells());
    for (std::size_t one = 0; one < states; ++one)
      for (std::size_t other = one + 1; other < states; ++other) {
        std::transform(answers(one).begin(), answers(one).end(), answers(other).begin(), sum.begin(), std::plus<>());
        lost.emplace_back(alone[one] + alone[other] - log_soft_answers(rows_.cells(), sum, model.answers), one, other);
      }
    std::sort(lost.begin(), lost.end());
    std::vector<std::pair<std::size_t, std::size_t>> pairs;
    for (const auto& [loss, one, other] : lost) pairs.emplace_back(one, other);
    return pairs;
  }

  // Joins the two states that cost least, of those that answer most alike.
  HiddenModel smaller_by_one(HiddenModel model) const {
    const HiddenCounts counts = improve(model, 1, false);
    auto pairs = alike(model, counts);
    if (pairs.size() > tried_joins) pairs.resize(tried_joins);
    HiddenModel next;
    double best = -1e300;
    for (const auto& [one, other] : pairs) {
      HiddenModel smaller = joined(model, counts, one, other);
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
      if (weighed.model.states < model.states) model = softened(weighed.model);
      if (model.states < 3) return found;
      model = smaller_by_one(model);
    }
  }

  // Splits states of the best machine for as long as that is better.
  void grow() {
    while (best_.model.states < options_.most_states) {
      const HiddenModel model = softened(best_.model);
      std::vector<std::pair<double, HiddenModel>> tried;
      const std::size_t states = index(model.states);
      for (std::size_t label = 0; label < labels(); ++label) {
        if (static_cast<Id>(label) == options_.kind.silence) continue;
        for (std::size_t state = 0; state < states; ++state) {
          if (made(best_.counts, states, label, state) < 2.0) continue;
          HiddenModel larger = split(model, label, state, index(target(model, label, state)));
          const double value = improve(larger, 2, false).log_likelihood;
          tried.emplace_back(value, std::move(larger));
        }
      }
      std::stable_sort(tried.begin(), tried.end(), [](const auto& one, const auto& other) { return one.first > other.first; });
      if (tried.size() > tried_splits) tried.resize(tried_splits);
      bool better = false;
      for (auto& [value, larger] : tried) {
        improve(larger, slow_passes, false);
        better |= keep(weigh(larger));
      }
      if (!better) return;
    }
  }

  // Moves that are sure leak a little again, so that expectation can change them.
  HiddenModel softened(HiddenModel model) const {
    const std::size_t states = index(model.states);
    for (std::size_t label = 0; label < labels(); ++label) {
      if (static_cast<Id>(label) == options_.kind.silence) continue;
      for (std::size_t at = label * states * states; at < (label + 1) * states * states; ++at)
        model.moves[at] = (1.0 - leak) * model.moves[at] + leak / model.states;
    }
    return model;
  }

  // One state more: a copy of `next`, which `label` leads to from `state`.
  HiddenModel split(const HiddenModel& model, std::size_t label, std::size_t state, std::size_t next) const {
    const std::size_t before = index(model.states);
    std::vector<std::size_t> origin(before + 1);
    std::iota(origin.begin(), origin.end(), std::size_t{0});
    origin[before] = next;
    HiddenModel larger = copied(model, origin);
    // The copy is reached by this move alone.
    for (std::size_t row = 0; row < labels() * (before + 1); ++row) larger.moves[row * (before + 1) + before] = 0.0;
    double* move = &larger.moves[(label * (before + 1) + state) * (before + 1)];
    std::swap(move[next], move[before]);
    if (next == state && static_cast<Id>(label) != options_.kind.silence) {
      double* stay = &larger.moves[(label * (before + 1) + before) * (before + 1)];
      std::swap(stay[next], stay[before]);
    }
    if (options_.kind.silence != none) {
      double* silent = &larger.moves[(index(options_.kind.silence) * (before + 1) + before) * (before + 1)];
      std::fill_n(silent, before + 1, 0.0);
      silent[before] = 1.0;
    }
    larger.starts[before] = 0.0;
    larger.starts[next] = model.starts[next];
    return larger;
  }

  // A model in which state k is a copy of state origin[k]; what is led to an original is shared
  // evenly among its copies.
  HiddenModel copied(const HiddenModel& model, const std::vector<std::size_t>& origin) const {
    const std::size_t before = index(model.states);
    const std::size_t states = origin.size();
    std::vector<double> copies(before);
    for (const std::size_t state : origin) ++copies[state];
    HiddenModel larger = model;
    larger.states = static_cast<Id>(states);
    larger.moves.assign(labels() * states * states, 0.0);
    larger.starts.assign(states, 0.0);
    larger.chances.clear();
    for (std::size_t state = 0; state < states; ++state) {
      const auto first = model.chances.begin() + static_cast<std::ptrdiff_t>(origin[state] * cells());
      larger.chances.insert(larger.chances.end(), first, first + static_cast<std::ptrdiff_t>(cells()));
      larger.starts[state] = model.starts[origin[state]] / copies[origin[state]];
      for (std::size_t label = 0; label < labels(); ++label)
        for (std::size_t next = 0; next < states; ++next)
          larger.moves[(label * states + state) * states + next] =
              model.moves[(label * before + origin[state]) * before + origin[next]] / (state < before && next < before ? 1.0 : copies[origin[next]]);
    }
    return larger;
  }

  // Tries the best machine twice side by side: an episode begins in the one or in the other, and
  // stays there. States of both that are alike are joined again.
  void grow_starts() {
    for (bool better = true; better;) {
      better = false;
      const HiddenModel model = softened(best_.model);
      const std::size_t before = index(model.states);
      if (2 * before > index(most_hidden_states)) return;
      HiddenModel best;
      double most = -1e300;
      for (const double kept : sides_kept)
        for (int copy = 0; copy < tried_copies; ++copy) {
          HiddenModel larger = side_by_side(model, kept, options_.seed + static_cast<std::uint64_t>(copy));
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

  HiddenModel side_by_side(const HiddenModel& model, double kept, std::uint64_t seed) const {
    const std::size_t before = index(model.states);
    std::vector<std::size_t> origin(2 * before);
    for (std::size_t state = 0; state < 2 * before; ++state) origin[state] = state % before;
    HiddenModel larger = copied(model, origin);
    const std::size_t states = 2 * before;
    for (std::size_t row = 0; row < labels() * states; ++row) {
      const std::size_t label = row / states;
      const std::size_t state = row % states;
      const double same_side = static_cast<Id>(label) == options_.kind.silence ? 1.0 : kept;
      for (std::size_t next = 0; next < states; ++next)
        larger.moves[row * states + next] = model.moves[(label * before + state % before) * before + next % before] *
                                            ((state < before) == (next < before) ? same_side : 1.0 - same_side);
    }
    // Both answer a little differently at first, by chance, or they would stay the same.
    Random random(seed);
    for (std::size_t at = 0; at < larger.chances.size(); ++at) larger.chances[at] *= 0.5 + random.unit();
    return larger;
  }

  // Goes on with all traces from the machines that were about the best on some of them.
  void settle_on_all() {
    const auto some = by_size_;
    const Id about = best_.model.states;
    rows_.look_at(rows_.all_rows());
    by_size_.clear();
    best_ = weigh(one_state());
    one_state_ = best_.log_evidence;
    keep(best_);
    for (const auto& [states, machine] : some) {
      if (std::abs(states - about) > 1 || states == 1) continue;
      HiddenModel model = softened(machine.model);
      improve(model, slow_passes, false);
      keep(weigh(std::move(model)));
    }
    while (best_.model.states > 2 && keep(weigh(smaller_by_one(softened(best_.model))))) {
    }
  }

  // How often labels lie is found slowly, since most of what they hide shows little.
  void finish() {
    improve(best_.model, last_passes, true);
    best_.counts = expect(rows_, best_.model);
    best_.log_evidence = std::max(best_.log_evidence, evidence(best_.model, best_.counts));
    tell();
  }

 public:
  // The labels and states that traces most likely had under the best machine.
  [[nodiscard]] LikelyPath path(const Answers& answers, const Labels& labels) const {
    const AnswerCells cells = telling_answers(number_answers(answers), 0.0, 0.0);
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
      for (std::size_t asked = 0; asked < rows_.cells().questions(); ++asked) {
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
