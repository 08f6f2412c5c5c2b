// Q-learning for Python: single steps, or whole episodes in a tabular environment.

#include "q_learning.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>

#include <cmath>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "tabular_trainer.hpp"

namespace {

using resolvent::KnownSteps;
using resolvent::Outcome;
using resolvent::QLearner;
using resolvent::TabularTrainer;

template <typename T>
std::vector<T> copied(const Column<T>& column) {
  const auto values = span_of(column);
  return {values.begin(), values.end()};
}

void check_finite(std::span<const double> values) {
  for (const double value : values) require(std::isfinite(value), "a column holds a value that is not finite");
}

void check_state(const QLearner& learner, Id state) {
  require(state >= 0 && state < learner.states(), "there is no such state");
}

void check_action(const QLearner& learner, Id action) {
  require(action >= 0 && action < learner.actions(), "there is no such action");
}

// ---- one step at a time ----------------------------------------------------

void make_learner(QLearner* memory, Id actions, double alpha, double gamma, std::uint64_t seed, double initial) {
  require(actions >= 1, "a learner needs at least one action");
  new (memory) QLearner(actions, alpha, gamma, seed, initial);
}

void put(QLearner& learner, Id state, const Reals& values) {
  check_state(learner, state);
  require(values.size() == static_cast<std::size_t>(learner.actions()), "there must be a value for every action");
  check_finite(span_of(values));
  learner.put(state, span_of(values));
}

Id choose(QLearner& learner, Id state, double epsilon) {
  check_state(learner, state);
  return learner.choose(state, epsilon);
}

void update(QLearner& learner, Id state, Id action, double reward, Id next, bool ended) {
  check_state(learner, state);
  check_state(learner, next);
  check_action(learner, action);
  learner.update(state, action, reward, next, ended);
}

// `observation` and the rest are by augmented state; `outcome` is 0 for unknown, 1 if the episode
// continues, 2 if it ends.
KnownSteps known_steps(const Ids& observation, Id observations, const Ids& next_state, const Reals& reward,
                       const Ids& outcome, Id actions) {
  require(actions >= 1 && observations >= 0, "there must be an action");
  require(next_state.size() == observation.size() * static_cast<std::size_t>(actions) &&
              reward.size() == next_state.size() && outcome.size() == next_state.size(),
          "next_state, reward and outcome must hold one row of `actions` entries per augmented state");
  check_codes(span_of(observation), observations, 0);
  check_codes(span_of(next_state), static_cast<std::int64_t>(observation.size()), resolvent::none);
  check_codes(span_of(outcome), 3, 0);
  check_finite(span_of(reward));
  KnownSteps known{actions, copied(next_state), copied(reward), {}, {}};
  for (std::size_t at = 0; at < outcome.size(); ++at) {
    const auto here = static_cast<Outcome>(span_of(outcome)[at]);
    require(here != Outcome::goes_on || known.next_state[at] >= 0, "a step that goes on must lead somewhere");
    known.outcome.push_back(here);
  }
  known.among.resize(static_cast<std::size_t>(observations));
  for (std::size_t at = 0; at < observation.size(); ++at)
    known.among[static_cast<std::size_t>(span_of(observation)[at])].push_back(static_cast<Id>(at));
  return known;
}

void learn_counterfactual(QLearner& learner, const KnownSteps& known, Id observation, Id action, Id real) {
  require(known.actions == learner.actions() && known.states() <= learner.states(),
          "the learner does not have these states");
  require(observation >= 0 && observation < static_cast<Id>(known.among.size()), "there is no such observation");
  check_action(learner, action);
  resolvent::learn_counterfactual(learner, known, observation, action, real);
}

// ---- whole episodes --------------------------------------------------------

resolvent::TabularEnv checked_env(const Ids& next_state, const Ids& ends, Id actions, const Reals& reward,
                                  const Ids& observation_of, const Ids& label_of, Id labels) {
  require(actions >= 1 && next_state.size() == observation_of.size() * static_cast<std::size_t>(actions) &&
              ends.size() == next_state.size() && reward.size() == next_state.size() &&
              label_of.size() == observation_of.size(),
          "a world's tables must be equally long");
  check_codes(span_of(next_state), static_cast<std::int64_t>(observation_of.size()), 0);
  check_codes(span_of(ends), 2, 0);
  check_codes(span_of(label_of), labels, 0);
  check_ids(span_of(observation_of), "observation_of holds an id below -1");
  check_finite(span_of(reward));
  const auto last = span_of(ends);
  return {{copied(next_state), {last.begin(), last.end()}, actions},
          copied(reward),
          copied(observation_of),
          copied(label_of)};
}

std::vector<Id> checked_transitions(const Ids& table, Id labels) {
  require(labels >= 1 && table.size() % static_cast<std::size_t>(labels) == 0 && table.size() > 0,
          "a machine's table must hold one row of `labels` targets per state");
  check_codes(span_of(table), static_cast<std::int64_t>(table.size()) / labels, resolvent::none);
  return copied(table);
}

// `stack` is 0 for augmented observations, else the number of stacked observations.
std::unique_ptr<TabularTrainer> tabular_trainer(const Ids& next_state, const Ids& ends, Id actions, const Reals& reward,
                                                const Ids& observation_of, const Ids& label_of, Id labels,
                                                const Ids& transition, const Ids& reward_transitions, bool reads_first,
                                                bool lags, Id stack, const KnownSteps* known,
                                                const Ids& known_observation, const Reals& potential) {
  require(stack >= 0, "stack must be at least 0");
  auto env = checked_env(next_state, ends, actions, reward, observation_of, label_of, labels);
  resolvent::Machines machines{checked_transitions(transition, labels),
                               checked_transitions(reward_transitions, labels),
                               labels,
                               static_cast<Id>(reward_transitions.size()) / labels,
                               reads_first,
                               lags};
  const auto joint = (machines.transition.size() / static_cast<std::size_t>(labels)) *
                     static_cast<std::size_t>(machines.reward_states);
  require(potential.size() == 0 || (potential.size() == joint && stack == 0),
          "potential must have an entry for every two states of the machines");
  check_finite(span_of(potential));
  if (known != nullptr) {
    require(known->actions == actions && stack == 0, "the model must have the world's actions");
    for (const Id observation : span_of(observation_of))
      require(observation >= 0 && static_cast<std::size_t>(observation) < known_observation.size(),
              "known_observation must have an entry for every observation");
    check_codes(span_of(known_observation), static_cast<std::int64_t>(known->among.size()), resolvent::none);
  }
  return std::make_unique<TabularTrainer>(
      std::move(env), std::move(machines), static_cast<std::size_t>(stack), known == nullptr ? KnownSteps{} : *known,
      known == nullptr ? std::vector<Id>{} : copied(known_observation), copied(potential));
}

void check_same(const TabularTrainer& trainer, const QLearner& learner) {
  require(learner.actions() == trainer.env().world.actions && learner.states() == trainer.augmented_states().size(),
          "the learner does not belong to this trainer");
}

// Augmented states that the learner has already, one row of codes each.
void expect(TabularTrainer& trainer, const Ids& codes) {
  const std::size_t width = trainer.augmented_states().width();
  require(codes.size() % width == 0, "codes must hold whole rows");
  for (std::size_t at = 0; at < codes.size(); at += width) trainer.expect(span_of(codes).subspan(at, width));
}

void begin(TabularTrainer& trainer, QLearner& learner, Id state) {
  check_same(trainer, learner);
  require(state >= 0 && static_cast<std::size_t>(state) < trainer.env().observation_of.size(),
          "there is no such state");
  trainer.begin(learner, state);
}

// Return whether the episode is over.
bool run(TabularTrainer& trainer, QLearner& learner, double epsilon, Row steps) {
  check_same(trainer, learner);
  nb::gil_scoped_release no_gil;
  trainer.run(learner, epsilon, steps);
  return trainer.result().ended;
}

nb::tuple value_of(const TabularTrainer& trainer, const Ids& policy, double gamma, const Ids& starts) {
  require(policy.size() == static_cast<std::size_t>(trainer.augmented_states().size()),
          "the policy must have an action for every augmented state");
  check_codes(span_of(policy), trainer.env().world.actions, 0);
  check_codes(span_of(starts), static_cast<std::int64_t>(trainer.env().observation_of.size()), 0);
  TabularTrainer::PolicyValue result;
  {
    nb::gil_scoped_release no_gil;
    result = trainer.value_of(span_of(policy), gamma, span_of(starts));
  }
  return nb::make_tuple(array(std::move(result.value)), array(std::move(result.ends)));
}

}  // namespace

void bind_q_learning(nb::module_& module) {
  nb::class_<QLearner>(module, "QLearner")
      .def("__init__", &make_learner, "actions"_a, "alpha"_a, "gamma"_a, "seed"_a, "initial"_a = 0.0)
      .def_prop_ro("states", &QLearner::states)
      .def("add", &QLearner::add, "potential"_a = 0.0)
      .def("set_values", &put, "state"_a, "values"_a)
      .def("choose", &choose, "state"_a, "epsilon"_a)
      .def("update", &update, "state"_a, "action"_a, "reward"_a, "next_state"_a, "ended"_a)
      .def("learn_counterfactual", &learn_counterfactual, "known"_a, "observation"_a, "action"_a, "real"_a)
      .def("values", [](const QLearner& learner) { return array(std::vector<double>(learner.values())); });
  nb::class_<KnownSteps>(module, "KnownSteps");
  module.def("known_steps", &known_steps, "observation"_a, "observations"_a, "next_state"_a, "reward"_a, "outcome"_a,
             "actions"_a);
  nb::class_<TabularTrainer>(module, "TabularTrainer")
      .def("add_states", &expect, "codes"_a)
      .def("begin", &begin, "learner"_a, "state"_a)
      .def("run", &run, "learner"_a, "epsilon"_a, "steps"_a)
      .def("value_of", &value_of, "policy"_a, "gamma"_a, "starts"_a)
      .def("codes",
           [](const TabularTrainer& trainer) { return array(std::vector<Id>(trainer.augmented_states().codes())); })
      .def_prop_ro("result", [](const TabularTrainer& trainer) {
        const auto& result = trainer.result();
        return std::tuple(result.total, result.discounted, result.steps);
      });
  module.def("tabular_trainer", &tabular_trainer, "next_state"_a, "ends"_a, "actions"_a, "reward"_a, "observation_of"_a,
             "label_of"_a, "labels"_a, nb::kw_only(), "transition"_a, "reward_transitions"_a, "reads_first"_a, "lags"_a,
             "stack"_a, "known"_a.none(), "known_observation"_a, "potential"_a);
}
