// Repair of a machine that explains its samples, and a lower bound on the number of states, for Python.

#include "repair.hpp"

#include <set>
#include <variant>
#include <vector>

#include "learning.hpp"
#include "lower_bound.hpp"
#include "pair_map.hpp"

namespace {

// Return a lower bound on the number of states that explain the samples, within a work limit. The machine
// goes from `state` with `label` to `target`; other labels are loops.
Id fewest_states(const resolvent::HistoryTree& histories, const Ids& alpha, const Ids& output, Id states,
                 const Ids& state, const Ids& label, const Ids& target, std::int64_t work) {
  require(states > 0, "a machine has at least one state");
  require(state.size() == label.size() && state.size() == target.size(),
          "the columns of transitions must be equally long");
  check_codes(span_of(state), states, 0);
  check_codes(span_of(target), states, 0);
  const resolvent::Outputs outputs = checked_outputs(alpha, output, histories);
  nb::gil_scoped_release no_gil;
  const auto built = resolvent::build_prefix_tree(histories, outputs);
  const auto* tree = std::get_if<resolvent::PrefixTree>(&built);
  if (tree == nullptr) return 1;
  resolvent::PairMap table;
  for (std::size_t at = 0; at < state.size(); ++at)
    table.at(span_of(state)[at], span_of(label)[at]) = span_of(target)[at];
  std::vector<Id> state_of(static_cast<std::size_t>(tree->size()), 0);
  for (std::size_t node = 1; node < state_of.size(); ++node) {
    const Id from = state_of[static_cast<std::size_t>(histories.parent[node])];  // parents come first
    const Id to = table.find(from, histories.label[node]);
    state_of[node] = to == resolvent::none ? from : to;
  }
  resolvent::Watch watch(nullptr, 0);
  return resolvent::fewest_states(*tree, state_of, work, watch);
}

// The machine goes from `state` with `label` to `target`.
nb::dict repair(const resolvent::HistoryTree& histories, const Ids& alpha, const Ids& output, Id states,
                const Ids& state, const Ids& label, const Ids& target, std::uint64_t seed, std::int64_t budget,
                double time_limit, const nb::object& progress) {
  require(budget >= 0, "the budget must be at least 0");
  require(states > 0, "a machine has at least one state");
  require(state.size() == label.size() && state.size() == target.size(),
          "the columns of transitions must be equally long");
  check_codes(span_of(state), states, 0);
  check_codes(span_of(target), states, 0);
  const std::set<Id> known(histories.label.begin() + 1, histories.label.end());
  for (const Id each : span_of(label)) require(known.contains(each), "label holds one that no history has");
  std::vector<resolvent::Transition> transitions;
  for (std::size_t at = 0; at < state.size(); ++at)
    transitions.push_back({span_of(state)[at], span_of(label)[at], span_of(target)[at], 0});
  const resolvent::RepairOptions options{seed, budget};
  const auto learner = [&](const resolvent::PrefixTree& tree, resolvent::Watch& watch) {
    return resolvent::repair_states(tree, states, transitions, options, watch);
  };
  return learn_with(learner, histories, alpha, output, time_limit, progress);
}

}  // namespace

void bind_repair(nb::module_& module) {
  module.def("min_states_bound", &fewest_states, "histories"_a, "alpha"_a, "output"_a, nb::kw_only(), "states"_a,
             "state"_a, "label"_a, "target"_a, "work"_a);
  module.def("repair", &repair, "histories"_a, "alpha"_a, "output"_a, nb::kw_only(), "states"_a, "state"_a, "label"_a,
             "target"_a, "seed"_a, "budget"_a, "time_limit"_a = 0.0, "progress"_a.none() = nb::none());
}
