// Trace columns for Python: checked once, replayed often.

#include "replay.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <string>
#include <tuple>

#include "arrays.hpp"

namespace {

using resolvent::Location;
using resolvent::OutputCount;
using resolvent::ReplayedMachine;
using resolvent::TransitionCount;

// Transitions, output column, whether the machine is supplemented.
using MachineArguments = std::tuple<Ids, Id, bool>;

template <typename T>
std::vector<std::span<const T>> spans_of(const std::vector<Column<T>>& columns) {
  std::vector<std::span<const T>> out;
  for (const Column<T>& machine : columns) out.push_back(span_of(machine));
  return out;
}

// Holds references to the arrays, and what was checked about them.
class TraceColumns {
 public:
  TraceColumns(Ids observation, Ids label, Ids action, std::vector<Ids> outputs, Rows offsets, Ids ended,
               Id observations, Id labels, Id actions, std::vector<Id> sizes)
      : observation_(std::move(observation)),
        label_(std::move(label)),
        action_(std::move(action)),
        outputs_(std::move(outputs)),
        offsets_(std::move(offsets)),
        ended_(std::move(ended)),
        columns_{span_of(observation_),
                 span_of(label_),
                 span_of(action_),
                 spans_of(outputs_),
                 span_of(offsets_),
                 span_of(ended_),
                 observations,
                 labels,
                 actions},
        sizes_(std::move(sizes)) {
    check_offsets(columns_.offsets, columns_.action.size());
    const std::size_t traces = columns_.traces();
    require(columns_.ended.size() == traces && columns_.observation.size() == columns_.action.size() + traces &&
                columns_.label.size() == columns_.observation.size(),
            "the columns do not fit the offsets");
    require(columns_.outputs.size() == sizes_.size(), "each column of outputs needs its number of codes");
    require(traces < static_cast<std::size_t>(std::numeric_limits<Id>::max()), "there are too many traces");
    for (std::size_t trace = 0; trace < traces; ++trace)
      require(columns_.offsets[trace + 1] > columns_.offsets[trace], "a trace has no steps");
    for (const auto& output : columns_.outputs)
      require(output.size() == columns_.action.size(), "the columns do not fit the offsets");
    nb::gil_scoped_release no_gil;
    check_codes(columns_.observation, observations, 0);
    check_codes(columns_.label, labels, 0);
    check_codes(columns_.action, actions, 0);
    for (std::size_t at = 0; at < sizes_.size(); ++at) check_codes(columns_.outputs[at], sizes_[at], 0);
  }

  nb::object keys(const Rows& observation, const Rows& label, const Rows& action, const std::vector<Rows>& outputs,
                  unsigned threads) const {
    const resolvent::ValueKeys keys{span_of(observation), span_of(label), span_of(action), spans_of(outputs)};
    require(keys.observation.size() >= size(columns_.observations) && keys.label.size() >= size(columns_.labels) &&
                keys.action.size() >= size(columns_.actions) && keys.outputs.size() == sizes_.size(),
            "a key is missing");
    for (std::size_t at = 0; at < sizes_.size(); ++at)
      require(keys.outputs[at].size() >= size(sizes_[at]), "a key is missing");
    std::vector<Row> out;
    {
      nb::gil_scoped_release no_gil;
      out = resolvent::trace_keys(columns_, keys, threads);
    }
    return nb::cast(array(std::move(out)));
  }

  nb::dict replay(const std::vector<MachineArguments>& machines, const Ids& rank, Id first, Id lag, bool outputs,
                  bool augmented_states, bool unknown_states, bool earliest, bool states, unsigned threads) const {
    require(first >= 0 && first <= 1 && lag >= 0 && lag <= 1,
            "a reading starts at label 0 or 1, at most one step late");
    require(rank.size() == 0 || rank.size() == columns_.traces(), "each trace needs its rank");
    const std::vector<ReplayedMachine> checked = checked_machines(machines, outputs && augmented_states);
    resolvent::Replay result;
    {
      nb::gil_scoped_release no_gil;
      result = resolvent::replay(columns_, span_of(rank), {first, lag}, checked,
                                 {outputs, outputs && augmented_states, unknown_states, earliest, states}, threads);
    }
    nb::list machine_columns;
    for (resolvent::MachineReplay& machine : result.machines)
      machine_columns.append(columns_of(std::move(machine), earliest));
    nb::dict out;
    out["machines"] = machine_columns;
    using resolvent::AugmentedState;
    out["augmented_state_number"] = column(result.augmented_states, &AugmentedState::number);
    out["augmented_state_count"] = column(result.augmented_states, &AugmentedState::count);
    out["augmented_state_ended"] = column(result.augmented_states, &AugmentedState::ended);
    out["counted"] = resolvent::outputs_count_augmented_states(checked);
    return out;
  }

 private:
  static std::size_t size(Id count) { return static_cast<std::size_t>(count); }

  [[nodiscard]] std::vector<ReplayedMachine> checked_machines(const std::vector<MachineArguments>& machines,
                                                              bool numbered) const {
    require(!machines.empty(), "there is no machine to replay");
    std::vector<ReplayedMachine> out;
    std::int64_t augmented_states = std::int64_t{columns_.observations} * std::int64_t{columns_.actions};
    for (const auto& [transitions, output_column, supplemented] : machines) {
      const auto table = span_of(transitions);
      require(columns_.labels > 0 && !table.empty() && table.size() % size(columns_.labels) == 0,
              "transitions must hold one row of targets per state");
      const auto states = static_cast<Id>(table.size() / size(columns_.labels));
      check_codes(table, states, resolvent::none);
      require(output_column >= resolvent::whether_terminated && output_column < static_cast<Id>(sizes_.size()),
              "a machine predicts a column that is not there");
      require(!supplemented || !out.empty(), "the first machine cannot be supplemented");
      require(!numbered || augmented_states <= std::numeric_limits<std::int64_t>::max() / states,
              "there are too many augmented states");
      if (numbered) augmented_states *= states;
      out.push_back({table, states, output_column, supplemented});
    }
    return out;
  }

  static nb::dict columns_of(resolvent::MachineReplay&& machine_columns, bool earliest) {
    nb::dict out;
    add_outputs(out, "output", machine_columns.outputs, earliest);
    add_outputs(out, "conflict", machine_columns.conflicts, earliest);
    out["transition_state"] = column(machine_columns.transitions, &TransitionCount::state);
    out["transition_label"] = column(machine_columns.transitions, &TransitionCount::label);
    add_occurrences(out, "transition", machine_columns.transitions, earliest);
    out["unqueried"] = machine_columns.unqueried;
    out["states"] = array(std::move(machine_columns.states));
    return out;
  }

  static void add_outputs(nb::dict& out, const std::string& name, const std::vector<OutputCount>& outputs,
                          bool earliest) {
    out[(name + "_state").c_str()] = column(outputs, &OutputCount::state);
    out[(name + "_query").c_str()] = column(outputs, &OutputCount::query);
    add_occurrences(out, name, outputs, earliest);
  }

  template <typename Record>
  static void add_occurrences(nb::dict& out, const std::string& name, const std::vector<Record>& records,
                              bool earliest) {
    std::vector<Id> output;
    std::vector<Row> count;
    for (const Record& record : records) {
      output.push_back(record.seen.output);
      count.push_back(record.seen.count);
    }
    out[(name + "_output").c_str()] = array(std::move(output));
    out[(name + "_count").c_str()] = array(std::move(count));
    add_locations(out, name + "_", records, [](const Record& machine) { return machine.seen.location; });
    if (earliest)
      add_locations(out, name + "_early_", records, [](const Record& machine) { return machine.seen.earliest; });
  }

  template <typename Record, typename Which>
  static void add_locations(nb::dict& out, const std::string& name, const std::vector<Record>& records, Which which) {
    std::vector<Id> trace;
    std::vector<Id> step;
    for (const Record& record : records) {
      const Location location = which(record);
      trace.push_back(location.trace);
      step.push_back(location.step);
    }
    out[(name + "trace").c_str()] = array(std::move(trace));
    out[(name + "step").c_str()] = array(std::move(step));
  }

  Ids observation_;
  Ids label_;
  Ids action_;
  std::vector<Ids> outputs_;
  Rows offsets_;
  Ids ended_;
  resolvent::TraceColumns columns_;
  std::vector<Id> sizes_;  // number of codes of each column of outputs
};

}  // namespace

void bind_replay(nb::module_& module) {
  module.attr("NEXT_OBSERVATION") = resolvent::next_observation;
  module.attr("WHETHER_TERMINATED") = resolvent::whether_terminated;
  module.def(
      "key_residues",
      [](const Rows& keys, std::uint64_t base, std::uint64_t second_base) {
        constexpr std::uint64_t modulus = (std::uint64_t{1} << 61) - 1;
        require(base < modulus && second_base < modulus, "a base must be below 2^61 - 1");
        nb::gil_scoped_release no_gil;
        return resolvent::key_residues(span_of(keys), base, second_base);
      },
      "keys"_a, "base"_a, "other_base"_a);
  nb::class_<TraceColumns>(module, "TraceColumns")
      .def(nb::init<Ids, Ids, Ids, std::vector<Ids>, Rows, Ids, Id, Id, Id, std::vector<Id>>(), nb::kw_only(),
           "observation"_a, "label"_a, "action"_a, "outputs"_a, "offsets"_a, "ended"_a, "observations"_a, "labels"_a,
           "actions"_a, "output_sizes"_a)
      .def("keys", &TraceColumns::keys, nb::kw_only(), "observation"_a, "label"_a, "action"_a, "outputs"_a, "threads"_a)
      .def("replay", &TraceColumns::replay, "machines"_a, nb::kw_only(), "rank"_a, "first"_a, "lag"_a, "outputs"_a,
           "augmented_states"_a, "unknown_states"_a, "earliest"_a, "states"_a, "threads"_a);
}
