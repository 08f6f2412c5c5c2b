// Repair of a machine by small changes, as Python sees it.

#include "repair.hpp"

#include "learning.hpp"

namespace {

// The machine is given by its transitions: where `state` goes with `label`.
nb::dict repair(const resolvent::HistoryTree& histories, const Ids& alpha, const Ids& output, Id states,
                const Ids& state, const Ids& label, const Ids& target, std::uint64_t seed, std::int64_t budget,
                double time_limit, const nb::object& progress) {
  require(budget >= 0, "the budget must be at least 0");
  require(states > 0, "a machine has at least one state");
  require(state.size() == label.size() && state.size() == target.size(),
          "the columns of transitions must be equally long");
  check_codes(span_of(state), states, 0);
  check_codes(span_of(target), states, 0);
  check_ids(span_of(label), "label holds an id below -1");
  std::vector<resolvent::Transition> transitions;
  for (std::size_t at = 0; at < state.size(); ++at)
    transitions.push_back({span_of(state)[at], span_of(label)[at], span_of(target)[at], 0});
  const resolvent::RepairOptions options{seed, budget};
  const auto learner = [&](const resolvent::PrefixTree& tree, resolvent::Pulse& pulse) {
    return resolvent::repair_states(tree, states, transitions, options, pulse);
  };
  return learn_with(learner, histories, alpha, output, time_limit, progress);
}

}  // namespace

void bind_repair(nb::module_& module) {
  module.def("repair", &repair, "histories"_a, "alpha"_a, "output"_a, nb::kw_only(), "states"_a, "state"_a, "label"_a,
             "target"_a, "seed"_a, "budget"_a, "time_limit"_a = 0.0, "progress"_a.none() = nb::none());
}
