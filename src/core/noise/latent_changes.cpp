#include "latent_changes.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <span>
#include <tuple>

#include "expected_outputs.hpp"
#include "random.hpp"

namespace resolvent {
namespace {

std::size_t label_count(const LatentRows& rows) { return index(rows.kind().labels); }
std::size_t cell_count(const LatentRows& rows) { return rows.cells().size(); }

constexpr double leak = 0.1;  // probability mass of each transition that is spread over all states
constexpr LabelNoise first_guess{0.02, 0.002, 0.01};

// Return a model in which state k is a copy of state origin[k]; transitions to an original are divided
// evenly among its copies.
LatentModel copied(const LatentRows& rows, const LatentModel& model, const std::vector<std::size_t>& origin) {
  const std::size_t before = index(model.states);
  const std::size_t states = origin.size();
  std::vector<double> copies(before);
  for (const std::size_t state : origin) ++copies[state];
  LatentModel larger = model;
  larger.states = static_cast<Id>(states);
  larger.transitions.assign(label_count(rows) * states * states, 0.0);
  larger.starts.assign(states, 0.0);
  larger.probabilities.clear();
  for (std::size_t state = 0; state < states; ++state) {
    const auto first = model.probabilities.begin() + static_cast<std::ptrdiff_t>(origin[state] * cell_count(rows));
    larger.probabilities.insert(larger.probabilities.end(), first,
                                first + static_cast<std::ptrdiff_t>(cell_count(rows)));
    larger.starts[state] = model.starts[origin[state]] / copies[origin[state]];
    for (std::size_t label = 0; label < label_count(rows); ++label)
      for (std::size_t next = 0; next < states; ++next)
        larger.transitions[(label * states + state) * states + next] =
            model.transitions[(label * before + origin[state]) * before + origin[next]] /
            (state < before && next < before ? 1.0 : copies[origin[next]]);
  }
  return larger;
}

}  // namespace

LatentModel one_state(const LatentRows& rows) {
  LatentModel model;
  model.transitions.assign(label_count(rows), 1.0);
  model.starts = {1.0};
  model.shares = rows.shares();
  model.probabilities.assign(cell_count(rows), 1.0);
  return model;
}

LatentModel initial_model(const LatentRows& rows, const Transitions& from) {
  LatentModel model = one_state(rows);
  const std::size_t states = from.size() / label_count(rows);
  model.states = static_cast<Id>(states);
  if (rows.kind().labels_lie) model.labels = first_guess;
  model.starts.assign(states, 0.0);
  model.starts[0] = 1.0;
  model.transitions.assign(label_count(rows) * states * states, leak / static_cast<double>(states));
  for (std::size_t label = 0; label < label_count(rows); ++label)
    for (std::size_t state = 0; state < states; ++state) {
      double* row = &model.transitions[(label * states + state) * states];
      if (static_cast<Id>(label) == rows.kind().silence) std::fill_n(row, states, 0.0);
      const Id target = from[state * label_count(rows) + label];
      row[static_cast<Id>(label) == rows.kind().silence || target == none ? state : index(target)] +=
          static_cast<Id>(label) == rows.kind().silence ? 1.0 : 1.0 - leak;
    }
  LatentCounts counts;
  counts.outputs.assign(states * cell_count(rows), 0.0);
  const Steps steps = rows.steps();
  for (std::size_t trace = 0; trace + 1 < steps.offsets.size(); ++trace) {
    std::size_t state = 0;
    const auto end = static_cast<std::size_t>(steps.offsets[trace + 1]);
    for (auto row = static_cast<std::size_t>(steps.offsets[trace]); row < end; ++row) {
      const Id label = steps.source[row];
      if (label != none && label < rows.kind().labels && label != rows.kind().silence)
        if (const Id target = from[state * label_count(rows) + index(label)]; target != none) state = index(target);
      if (steps.output[row] != none) ++counts.outputs[state * cell_count(rows) + index(steps.output[row])];
    }
  }
  fitted_log_expected_outputs(rows.cells(), counts.outputs, model.outputs);
  for (std::size_t state = 0; state < states; ++state) {
    const auto of_state = std::span(counts.outputs).subspan(state * cell_count(rows), cell_count(rows));
    const auto probabilities = output_probabilities(rows.cells(), of_state, model.outputs);
    if (state == 0) model.probabilities.clear();
    model.probabilities.insert(model.probabilities.end(), probabilities.begin(), probabilities.end());
  }
  return model;
}

void round_transitions(const LatentRows& rows, LatentModel& model) {
  const std::size_t states = index(model.states);
  for (std::size_t row = 0; row < label_count(rows) * states; ++row) {
    const auto first = model.transitions.begin() + static_cast<std::ptrdiff_t>(row * states);
    const auto last = first + static_cast<std::ptrdiff_t>(states);
    const auto best = std::max_element(first, last);
    std::fill(first, last, 0.0);
    *best = 1.0;
  }
}

LatentModel softened(const LatentRows& rows, LatentModel model) {
  const std::size_t states = index(model.states);
  for (std::size_t label = 0; label < label_count(rows); ++label) {
    if (static_cast<Id>(label) == rows.kind().silence) continue;
    for (std::size_t at = label * states * states; at < (label + 1) * states * states; ++at)
      model.transitions[at] = (1.0 - leak) * model.transitions[at] + leak / model.states;
  }
  return model;
}

LatentModel of_states(const LatentRows& rows, const LatentModel& model, const std::vector<Id>& states_kept) {
  const std::size_t before = index(model.states);
  const std::size_t states = states_kept.size();
  LatentModel smaller = model;
  smaller.states = static_cast<Id>(states);
  smaller.transitions.assign(label_count(rows) * states * states, 0.0);
  smaller.probabilities.clear();
  smaller.starts.assign(states, 0.0);
  double started = 0.0;
  for (std::size_t at = 0; at < states; ++at) {
    const auto first =
        model.probabilities.begin() + static_cast<std::ptrdiff_t>(index(states_kept[at]) * cell_count(rows));
    smaller.probabilities.insert(smaller.probabilities.end(), first,
                                 first + static_cast<std::ptrdiff_t>(cell_count(rows)));
    started += smaller.starts[at] = model.starts[index(states_kept[at])];
    for (std::size_t label = 0; label < label_count(rows); ++label) {
      double* row = &smaller.transitions[(label * states + at) * states];
      double all = 0.0;
      for (std::size_t next = 0; next < states; ++next)
        all += row[next] =
            model.transitions[(label * before + index(states_kept[at])) * before + index(states_kept[next])];
      if (all < 1e-6) row[at] += 1.0, all += 1.0;
      for (std::size_t next = 0; next < states; ++next) row[next] /= all;
    }
  }
  for (double& start : smaller.starts) start /= started;
  return smaller;
}

LatentModel joined(const LatentRows& rows, const LatentModel& model, const LatentCounts& counts, std::size_t first,
                   std::size_t second) {
  const std::size_t before = index(model.states);
  LatentModel smaller = model;
  smaller.states = model.states - 1;
  LatentCounts fewer = counts;
  const auto merged = [&](std::size_t state) { return state == second ? first : state > second ? state - 1 : state; };
  const std::size_t states = before - 1;
  fewer.transitions.assign(label_count(rows) * states * states, 0.0);
  fewer.outputs.assign(states * cell_count(rows), 0.0);
  fewer.starts.assign(states, 0.0);
  for (std::size_t state = 0; state < before; ++state) {
    fewer.starts[merged(state)] += counts.starts[state];
    for (std::size_t cell = 0; cell < cell_count(rows); ++cell)
      fewer.outputs[merged(state) * cell_count(rows) + cell] += counts.outputs[state * cell_count(rows) + cell];
    for (std::size_t label = 0; label < label_count(rows); ++label)
      for (std::size_t next = 0; next < before; ++next)
        fewer.transitions[(label * states + merged(state)) * states + merged(next)] +=
            counts.transitions[(label * before + state) * before + next];
  }
  smaller.transitions.resize(fewer.transitions.size());
  smaller.starts.assign(states, 0.0);
  smaller.starts[0] = 1.0;
  maximize(rows, fewer, false, smaller);
  return smaller;
}

std::vector<std::pair<std::size_t, std::size_t>> similar_pairs(const LatentRows& rows, const LatentModel& model,
                                                               const LatentCounts& counts) {
  const std::size_t states = index(model.states);
  const auto outputs = [&](std::size_t state) {
    return std::span(counts.outputs).subspan(state * cell_count(rows), cell_count(rows));
  };
  std::vector<double> alone;
  for (std::size_t state = 0; state < states; ++state)
    alone.push_back(log_expected_outputs(rows.cells(), outputs(state), model.outputs));
  std::vector<std::tuple<double, std::size_t, std::size_t>> lost;
  std::vector<double> sum(cell_count(rows));
  for (std::size_t first = 0; first < states; ++first)
    for (std::size_t second = first + 1; second < states; ++second) {
      std::transform(outputs(first).begin(), outputs(first).end(), outputs(second).begin(), sum.begin(), std::plus<>());
      lost.emplace_back(alone[first] + alone[second] - log_expected_outputs(rows.cells(), sum, model.outputs), first,
                        second);
    }
  std::sort(lost.begin(), lost.end());
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (const auto& [loss, first, second] : lost) pairs.emplace_back(first, second);
  return pairs;
}

LatentModel split(const LatentRows& rows, const LatentModel& model, std::size_t label, std::size_t state,
                  std::size_t next) {
  const std::size_t before = index(model.states);
  std::vector<std::size_t> origin(before + 1);
  std::iota(origin.begin(), origin.end(), std::size_t{0});
  origin[before] = next;
  LatentModel larger = copied(rows, model, origin);
  // Only this transition leads to the copy.
  for (std::size_t row = 0; row < label_count(rows) * (before + 1); ++row)
    larger.transitions[row * (before + 1) + before] = 0.0;
  double* row = &larger.transitions[(label * (before + 1) + state) * (before + 1)];
  std::swap(row[next], row[before]);
  if (next == state && static_cast<Id>(label) != rows.kind().silence) {
    double* stay = &larger.transitions[(label * (before + 1) + before) * (before + 1)];
    std::swap(stay[next], stay[before]);
  }
  if (rows.kind().silence != none) {
    double* silent = &larger.transitions[(index(rows.kind().silence) * (before + 1) + before) * (before + 1)];
    std::fill_n(silent, before + 1, 0.0);
    silent[before] = 1.0;
  }
  larger.starts[before] = 0.0;
  larger.starts[next] = model.starts[next];
  return larger;
}

LatentModel doubled(const LatentRows& rows, const LatentModel& model, double stay_probability, std::uint64_t seed) {
  const std::size_t before = index(model.states);
  std::vector<std::size_t> origin(2 * before);
  for (std::size_t state = 0; state < 2 * before; ++state) origin[state] = state % before;
  LatentModel larger = copied(rows, model, origin);
  const std::size_t states = 2 * before;
  for (std::size_t row = 0; row < label_count(rows) * states; ++row) {
    const std::size_t label = row / states;
    const std::size_t state = row % states;
    const double same_side = static_cast<Id>(label) == rows.kind().silence ? 1.0 : stay_probability;
    for (std::size_t next = 0; next < states; ++next)
      larger.transitions[row * states + next] =
          model.transitions[(label * before + state % before) * before + next % before] *
          ((state < before) == (next < before) ? same_side : 1.0 - same_side);
  }
  // The copies start with randomly different outputs; otherwise they would stay equal.
  Random random(seed);
  for (std::size_t at = 0; at < larger.probabilities.size(); ++at) larger.probabilities[at] *= 0.5 + random.unit();
  return larger;
}

}  // namespace resolvent
