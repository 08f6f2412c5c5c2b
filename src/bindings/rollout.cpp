// Rollouts in tabular environments for Python.

#include "rollout.hpp"

#include <nanobind/nanobind.h>

#include <limits>

#include "arrays.hpp"

namespace {

resolvent::World checked_world(const Ids& next_state, const Ids& ends, Id actions) {
  require(actions >= 1, "a world needs at least one action");
  require(next_state.size() == ends.size() && next_state.size() % static_cast<std::size_t>(actions) == 0,
          "next_state and ends must hold one row of `actions` entries per state");
  require(next_state.size() <= static_cast<std::size_t>(std::numeric_limits<Id>::max()), "there are too many states");
  const auto states = static_cast<std::int64_t>(next_state.size()) / actions;
  check_codes(span_of(next_state), states, 0);
  check_codes(span_of(ends), 2, 0);
  const auto next = span_of(next_state);
  const auto last = span_of(ends);
  return {{next.begin(), next.end()}, {last.begin(), last.end()}, actions};
}

resolvent::Rollout rollout(const Ids& next_state, const Ids& ends, Id actions, const Ids& starts, Row max_steps) {
  auto world = checked_world(next_state, ends, actions);
  const auto first = span_of(starts);
  check_codes(first, static_cast<std::int64_t>(world.next_state.size()) / actions, 0);
  require(max_steps >= 0, "max_steps must be at least 0");
  return {std::move(world), {first.begin(), first.end()}, max_steps};
}

void feed(resolvent::Rollout& rollout, const Rows& actions) {
  const auto drawn = span_of(actions);
  for (const Row action : drawn) require(action >= 0 && action < rollout.world().actions, "there is no such action");
  nb::gil_scoped_release no_gil;
  rollout.feed(drawn);
}

nb::tuple take(resolvent::Rollout& rollout) {
  require(rollout.done(), "some episodes are not over");
  return nb::make_tuple(array(std::move(rollout.states())), array(std::move(rollout.actions())),
                        array(std::move(rollout.offsets())), array(std::move(rollout.terminated())));
}

}  // namespace

void bind_rollout(nb::module_& module) {
  nb::class_<resolvent::Rollout>(module, "Walk")
      .def_prop_ro("finished", &resolvent::Rollout::finished)
      .def_prop_ro("done", &resolvent::Rollout::done)
      .def("feed", &feed, "actions"_a)
      .def("take", &take);
  module.def("walk", &rollout, "next_state"_a, "ends"_a, "actions"_a, "starts"_a, "max_steps"_a);
}
