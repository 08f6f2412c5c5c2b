// Machines from noisy outputs for Python.

#include "alternatives.hpp"
#include "learning.hpp"
#include "log_evidence.hpp"
#include "machine_growth.hpp"
#include "output_cells.hpp"
#include "split_rows.hpp"
#include "subsample.hpp"

namespace {

// By label: whether it is assumed to be a loop at first.
std::vector<std::uint8_t> checked_quiet(const Ids& quiet, const Ids& beta) {
  require(quiet.size() > 0, "there must be a label");
  check_codes(span_of(quiet), 2, 0);
  check_codes(span_of(beta), static_cast<std::int64_t>(quiet.size()), resolvent::none);
  return {quiet.data(), quiet.data() + quiet.size()};
}

resolvent::Transitions checked_transitions(const Ids& transitions, Id labels, const Ids& beta) {
  require(labels >= 1 && transitions.size() > 0 && transitions.size() % static_cast<std::size_t>(labels) == 0,
          "transitions must hold one row of `labels` targets per state");
  check_codes(span_of(beta), labels, resolvent::none);
  const auto states = static_cast<Id>(transitions.size() / static_cast<std::size_t>(labels));
  check_codes(span_of(transitions), states, resolvent::none);
  return {transitions.data(), transitions.data() + transitions.size()};
}

nb::tuple weigh_noisy_machine(const Ids& alpha, const Ids& output, const Ids& beta, const Rows& offsets,
                              const Ids& transitions, Id labels) {
  const resolvent::Outputs outputs = checked_rows(alpha, output, beta);
  const resolvent::Labels read = checked_labels(beta, offsets);
  const resolvent::Transitions table = checked_transitions(transitions, labels, beta);
  const auto states = static_cast<Id>(table.size() / static_cast<std::size_t>(labels));
  double noise = 0.0;
  const auto evidence = [&] {
    nb::gil_scoped_release no_gil;
    const resolvent::OutputCells cells = resolvent::number_outputs(outputs);
    noise = resolvent::deviating_share(cells, read, table, states);
    return resolvent::weigh_machine(cells, read, table, states, {});
  }();
  return nb::make_tuple(evidence.log_evidence, noise, evidence.noise.strength, evidence.noise.share);
}

// Return the transitions of a machine, none where a label is never read.
std::vector<Id> transitions_read(resolvent::ScoredMachine& machine) {
  for (std::size_t entry = 0; entry < machine.transitions.size(); ++entry)
    if (machine.evidence.read[entry] == 0) machine.transitions[entry] = resolvent::none;
  return std::move(machine.transitions);
}

nb::dict grow_noisy_machine(const Ids& alpha, const Ids& output, const Ids& beta, const Rows& offsets, const Ids& quiet,
                            std::uint64_t seed, double effort, Id most_states, Row part, double time_limit,
                            const nb::object& progress) {
  const resolvent::Outputs outputs = checked_rows(alpha, output, beta);
  const resolvent::Labels read = checked_labels(beta, offsets);
  require(most_states >= 1 && part >= 1 && effort > 0, "an option is out of range");
  const resolvent::GrowthOptions options{seed, effort, most_states, part, checked_quiet(quiet, beta)};
  auto grown = [&] {
    nb::gil_scoped_release no_gil;
    return resolvent::grow_machine(outputs, read, options, listener(progress), time_limit);
  }();
  nb::dict sizes;
  nb::dict others;
  const double penalty = resolvent::state_penalty(grown.by_size);
  for (auto& [states, machine] : grown.by_size) {
    sizes[nb::int_(states)] = machine.evidence.log_evidence;
    others[nb::int_(states)] = array(transitions_read(machine));
  }
  nb::dict out;
  out["transitions"] = array(transitions_read(grown.best));
  out["log_evidence"] = grown.best.evidence.log_evidence;
  out["price"] = penalty;
  out["by_size"] = others;
  out["noise"] = grown.noise;
  out["sizes"] = sizes;
  out["finished"] = grown.finished;
  return out;
}

nb::tuple transition_alternatives(const Ids& alpha, const Ids& output, const Ids& beta, const Rows& offsets,
                                  const Ids& transitions, Id labels, Row part, std::uint64_t seed) {
  const resolvent::Outputs outputs = checked_rows(alpha, output, beta);
  const resolvent::Labels read = checked_labels(beta, offsets);
  const resolvent::Transitions table = checked_transitions(transitions, labels, beta);
  require(part >= 1, "an option is out of range");
  const auto states = static_cast<Id>(table.size() / static_cast<std::size_t>(labels));
  const auto alternatives = [&] {
    nb::gil_scoped_release no_gil;
    const bool is_part = read.offsets.back() > part;
    const resolvent::Subsample some =
        is_part ? resolvent::subsample_traces(outputs, read, part, seed) : resolvent::Subsample{};
    const resolvent::OutputCells cells = resolvent::number_outputs(is_part ? some.outputs() : outputs);
    const resolvent::Labels looked_at = is_part ? some.labels() : read;
    const auto evidence = resolvent::weigh_machine(cells, looked_at, table, states, {});
    return resolvent::transition_alternatives(cells, looked_at, table, states, evidence.noise);
  }();
  return nb::make_tuple(column(alternatives, &resolvent::Alternative::target),
                        column(alternatives, &resolvent::Alternative::log_odds));
}

// Output counts by [state, cell], and the most likely noise.
struct RowsInStates {
  resolvent::OutputCells cells;
  std::vector<Id> counts;
  resolvent::NoiseShape noise;

  RowsInStates(const resolvent::Outputs& outputs, std::span<const Id> state, Id states)
      : cells(resolvent::number_outputs(outputs)), counts(resolvent::count_outputs(cells, state, states)) {
    if (cells.size() > 0) resolvent::fitted_log_outputs(cells, counts, noise);
  }
};

nb::dict weigh_state_pairs(const Ids& alpha, const Ids& output, const Ids& state, Id states) {
  using resolvent::StatePair;
  const resolvent::Outputs outputs = checked_rows(alpha, output, state);
  require(states >= 1, "there must be a state");
  check_codes(span_of(state), states, resolvent::none);
  const auto pairs = [&] {
    nb::gil_scoped_release no_gil;
    const RowsInStates rows(outputs, span_of(state), states);
    return resolvent::weigh_pairs(rows.cells, rows.counts, states, rows.noise);
  }();
  nb::dict out;
  out["log_odds"] = column(pairs, &StatePair::log_odds);
  out["queries"] = column(pairs, &StatePair::queries);
  out["total"] = column(pairs, &StatePair::total);
  out["query"] = column(pairs, &StatePair::query);
  return out;
}

nb::dict split_noisy_rows(const Ids& alpha, const Ids& output, const Ids& state, const Ids& values, Id states,
                          double least) {
  using resolvent::SplitRow;
  const resolvent::Outputs outputs = checked_rows(alpha, output, state);
  require(states >= 1, "there must be a state");
  check_codes(span_of(state), states, resolvent::none);
  check_ids(span_of(values), "values holds an id below -1");
  require(state.size() == 0 ? values.size() == 0 : values.size() % state.size() == 0,
          "values must hold one value per row, for each feature");
  const auto result = [&] {
    nb::gil_scoped_release no_gil;
    const RowsInStates rows(outputs, span_of(state), states);
    return resolvent::split_rows(rows.cells, span_of(state), span_of(values), rows.noise, least);
  }();
  nb::dict out;
  out["feature"] = column(result, &SplitRow::feature);
  out["state"] = column(result, &SplitRow::state);
  out["query"] = column(result, &SplitRow::query);
  out["log_odds"] = column(result, &SplitRow::log_odds);
  out["total"] = column(result, &SplitRow::total);
  out["deviating"] = column(result, &SplitRow::deviating);
  out["deviating_apart"] = column(result, &SplitRow::deviating_apart);
  return out;
}

}  // namespace

void bind_noise(nb::module_& module) {
  module.def("transition_alternatives", &transition_alternatives, "alpha"_a, "output"_a, "beta"_a, "offsets"_a, nb::kw_only(),
             "transitions"_a, "labels"_a, "part"_a, "seed"_a = 0);
  module.def("compare_state_pairs", &weigh_state_pairs, "alpha"_a, "output"_a, "state"_a, nb::kw_only(), "states"_a);
  module.def("split_noisy_rows", &split_noisy_rows, "alpha"_a, "output"_a, "state"_a, nb::kw_only(), "values"_a,
             "states"_a, "least"_a);
  module.def("noisy_machine_evidence", &weigh_noisy_machine, "alpha"_a, "output"_a, "beta"_a, "offsets"_a, nb::kw_only(),
             "transitions"_a, "labels"_a);
  module.def("grow_noisy_machine", &grow_noisy_machine, "alpha"_a, "output"_a, "beta"_a, "offsets"_a, nb::kw_only(),
             "quiet"_a, "seed"_a, "effort"_a, "most_states"_a, "part"_a, "time_limit"_a = 0.0,
             "progress"_a.none() = nb::none());
}
