#include "hidden_changes.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <span>
#include <tuple>

#include "random.hpp"
#include "soft_answers.hpp"

namespace resolvent {
namespace {

std::size_t label_count(const HiddenRows& rows) { return index(rows.kind().labels); }
std::size_t cell_count(const HiddenRows& rows) { return rows.cells().size(); }

constexpr double leak = 0.1;  // of each move, to all states
constexpr LabelNoise first_guess{0.02, 0.002, 0.01};

// A model in which state k is a copy of state origin[k]; what is led to an original is shared
// evenly among its copies.
HiddenModel copied(const HiddenRows& rows, const HiddenModel& model, const std::vector<std::size_t>& origin) {
  const std::size_t before = index(model.states);
  const std::size_t states = origin.size();
  std::vector<double> copies(before);
  for (const std::size_t state : origin) ++copies[state];
  HiddenModel larger = model;
  larger.states = static_cast<Id>(states);
  larger.moves.assign(label_count(rows) * states * states, 0.0);
  larger.starts.assign(states, 0.0);
  larger.chances.clear();
  for (std::size_t state = 0; state < states; ++state) {
    const auto first = model.chances.begin() + static_cast<std::ptrdiff_t>(origin[state] * cell_count(rows));
    larger.chances.insert(larger.chances.end(), first, first + static_cast<std::ptrdiff_t>(cell_count(rows)));
    larger.starts[state] = model.starts[origin[state]] / copies[origin[state]];
    for (std::size_t label = 0; label < label_count(rows); ++label)
      for (std::size_t next = 0; next < states; ++next)
        larger.moves[(label * states + state) * states + next] =
            model.moves[(label * before + origin[state]) * before + origin[next]] /
            (state < before && next < before ? 1.0 : copies[origin[next]]);
  }
  return larger;
}

}  // namespace

HiddenModel one_state(const HiddenRows& rows) {
  HiddenModel model;
  model.moves.assign(label_count(rows), 1.0);
  model.starts = {1.0};
  model.shares = rows.shares();
  model.chances.assign(cell_count(rows), 1.0);
  return model;
}

HiddenModel begun(const HiddenRows& rows, const Moves& from) {
  HiddenModel model = one_state(rows);
  const std::size_t states = from.size() / label_count(rows);
  model.states = static_cast<Id>(states);
  if (rows.kind().labels_lie) model.labels = first_guess;
  model.starts.assign(states, 0.0);
  model.starts[0] = 1.0;
  model.moves.assign(label_count(rows) * states * states, leak / static_cast<double>(states));
  for (std::size_t label = 0; label < label_count(rows); ++label)
    for (std::size_t state = 0; state < states; ++state) {
      double* row = &model.moves[(label * states + state) * states];
      if (static_cast<Id>(label) == rows.kind().silence) std::fill_n(row, states, 0.0);
      const Id target = from[state * label_count(rows) + label];
      row[static_cast<Id>(label) == rows.kind().silence || target == none ? state : index(target)] +=
          static_cast<Id>(label) == rows.kind().silence ? 1.0 : 1.0 - leak;
    }
  HiddenCounts counts;
  counts.answers.assign(states * cell_count(rows), 0.0);
  const Steps steps = rows.steps();
  for (std::size_t trace = 0; trace + 1 < steps.offsets.size(); ++trace) {
    std::size_t state = 0;
    const auto end = static_cast<std::size_t>(steps.offsets[trace + 1]);
    for (auto row = static_cast<std::size_t>(steps.offsets[trace]); row < end; ++row) {
      const Id label = steps.source[row];
      if (label != none && label < rows.kind().labels && label != rows.kind().silence)
        if (const Id target = from[state * label_count(rows) + index(label)]; target != none) state = index(target);
      if (steps.answer[row] != none) ++counts.answers[state * cell_count(rows) + index(steps.answer[row])];
    }
  }
  fitted_log_soft_answers(rows.cells(), counts.answers, model.answers);
  for (std::size_t state = 0; state < states; ++state) {
    const auto given = std::span(counts.answers).subspan(state * cell_count(rows), cell_count(rows));
    const auto chances = answer_chances(rows.cells(), given, model.answers);
    if (state == 0) model.chances.clear();
    model.chances.insert(model.chances.end(), chances.begin(), chances.end());
  }
  return model;
}

void round_moves(const HiddenRows& rows, HiddenModel& model) {
  const std::size_t states = index(model.states);
  for (std::size_t row = 0; row < label_count(rows) * states; ++row) {
    const auto first = model.moves.begin() + static_cast<std::ptrdiff_t>(row * states);
    const auto last = first + static_cast<std::ptrdiff_t>(states);
    const auto best = std::max_element(first, last);
    std::fill(first, last, 0.0);
    *best = 1.0;
  }
}

HiddenModel softened(const HiddenRows& rows, HiddenModel model) {
  const std::size_t states = index(model.states);
  for (std::size_t label = 0; label < label_count(rows); ++label) {
    if (static_cast<Id>(label) == rows.kind().silence) continue;
    for (std::size_t at = label * states * states; at < (label + 1) * states * states; ++at)
      model.moves[at] = (1.0 - leak) * model.moves[at] + leak / model.states;
  }
  return model;
}

HiddenModel of_states(const HiddenRows& rows, const HiddenModel& model, const std::vector<Id>& kept) {
  const std::size_t before = index(model.states);
  const std::size_t states = kept.size();
  HiddenModel smaller = model;
  smaller.states = static_cast<Id>(states);
  smaller.moves.assign(label_count(rows) * states * states, 0.0);
  smaller.chances.clear();
  smaller.starts.assign(states, 0.0);
  double started = 0.0;
  for (std::size_t at = 0; at < states; ++at) {
    const auto first = model.chances.begin() + static_cast<std::ptrdiff_t>(index(kept[at]) * cell_count(rows));
    smaller.chances.insert(smaller.chances.end(), first, first + static_cast<std::ptrdiff_t>(cell_count(rows)));
    started += smaller.starts[at] = model.starts[index(kept[at])];
    for (std::size_t label = 0; label < label_count(rows); ++label) {
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

HiddenModel joined(const HiddenRows& rows, const HiddenModel& model, const HiddenCounts& counts, std::size_t one,
                   std::size_t other) {
  const std::size_t before = index(model.states);
  HiddenModel smaller = model;
  smaller.states = model.states - 1;
  HiddenCounts fewer = counts;
  const auto place = [&](std::size_t state) { return state == other ? one : state > other ? state - 1 : state; };
  const std::size_t states = before - 1;
  fewer.moves.assign(label_count(rows) * states * states, 0.0);
  fewer.answers.assign(states * cell_count(rows), 0.0);
  fewer.starts.assign(states, 0.0);
  for (std::size_t state = 0; state < before; ++state) {
    fewer.starts[place(state)] += counts.starts[state];
    for (std::size_t cell = 0; cell < cell_count(rows); ++cell)
      fewer.answers[place(state) * cell_count(rows) + cell] += counts.answers[state * cell_count(rows) + cell];
    for (std::size_t label = 0; label < label_count(rows); ++label)
      for (std::size_t next = 0; next < before; ++next)
        fewer.moves[(label * states + place(state)) * states + place(next)] +=
            counts.moves[(label * before + state) * before + next];
  }
  smaller.moves.resize(fewer.moves.size());
  smaller.starts.assign(states, 0.0);
  smaller.starts[0] = 1.0;
  maximise(rows, fewer, false, smaller);
  return smaller;
}

std::vector<std::pair<std::size_t, std::size_t>> alike(const HiddenRows& rows, const HiddenModel& model,
                                                       const HiddenCounts& counts) {
  const std::size_t states = index(model.states);
  const auto answers = [&](std::size_t state) {
    return std::span(counts.answers).subspan(state * cell_count(rows), cell_count(rows));
  };
  std::vector<double> alone;
  for (std::size_t state = 0; state < states; ++state)
    alone.push_back(log_soft_answers(rows.cells(), answers(state), model.answers));
  std::vector<std::tuple<double, std::size_t, std::size_t>> lost;
  std::vector<double> sum(cell_count(rows));
  for (std::size_t one = 0; one < states; ++one)
    for (std::size_t other = one + 1; other < states; ++other) {
      std::transform(answers(one).begin(), answers(one).end(), answers(other).begin(), sum.begin(), std::plus<>());
      lost.emplace_back(alone[one] + alone[other] - log_soft_answers(rows.cells(), sum, model.answers), one, other);
    }
  std::sort(lost.begin(), lost.end());
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (const auto& [loss, one, other] : lost) pairs.emplace_back(one, other);
  return pairs;
}

HiddenModel split(const HiddenRows& rows, const HiddenModel& model, std::size_t label, std::size_t state,
                  std::size_t next) {
  const std::size_t before = index(model.states);
  std::vector<std::size_t> origin(before + 1);
  std::iota(origin.begin(), origin.end(), std::size_t{0});
  origin[before] = next;
  HiddenModel larger = copied(rows, model, origin);
  // The copy is reached by this move alone.
  for (std::size_t row = 0; row < label_count(rows) * (before + 1); ++row)
    larger.moves[row * (before + 1) + before] = 0.0;
  double* move = &larger.moves[(label * (before + 1) + state) * (before + 1)];
  std::swap(move[next], move[before]);
  if (next == state && static_cast<Id>(label) != rows.kind().silence) {
    double* stay = &larger.moves[(label * (before + 1) + before) * (before + 1)];
    std::swap(stay[next], stay[before]);
  }
  if (rows.kind().silence != none) {
    double* silent = &larger.moves[(index(rows.kind().silence) * (before + 1) + before) * (before + 1)];
    std::fill_n(silent, before + 1, 0.0);
    silent[before] = 1.0;
  }
  larger.starts[before] = 0.0;
  larger.starts[next] = model.starts[next];
  return larger;
}

HiddenModel side_by_side(const HiddenRows& rows, const HiddenModel& model, double kept, std::uint64_t seed) {
  const std::size_t before = index(model.states);
  std::vector<std::size_t> origin(2 * before);
  for (std::size_t state = 0; state < 2 * before; ++state) origin[state] = state % before;
  HiddenModel larger = copied(rows, model, origin);
  const std::size_t states = 2 * before;
  for (std::size_t row = 0; row < label_count(rows) * states; ++row) {
    const std::size_t label = row / states;
    const std::size_t state = row % states;
    const double same_side = static_cast<Id>(label) == rows.kind().silence ? 1.0 : kept;
    for (std::size_t next = 0; next < states; ++next)
      larger.moves[row * states + next] = model.moves[(label * before + state % before) * before + next % before] *
                                          ((state < before) == (next < before) ? same_side : 1.0 - same_side);
  }
  // Both answer a little differently at first, by chance, or they would stay the same.
  Random random(seed);
  for (std::size_t at = 0; at < larger.chances.size(); ++at) larger.chances[at] *= 0.5 + random.unit();
  return larger;
}

}  // namespace resolvent
