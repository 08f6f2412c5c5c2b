// Distinguishing sequences and convergence for Python.

#include <limits>
#include <utility>

#include "convergence.hpp"
#include "learning.hpp"
#include "separation.hpp"

namespace {

resolvent::ObservedOutputs checked_outputs(const Ids& query, const Ids& state, const Ids& output, Id states,
                                           Id queries) {
  const resolvent::ObservedOutputs observed{span_of(query), span_of(state), span_of(output)};
  require(observed.state.size() == observed.query.size() && observed.output.size() == observed.query.size(),
          "the columns must be equally long");
  require(observed.state.size() < static_cast<std::size_t>(std::numeric_limits<Id>::max()),
          "there are too many outputs");
  check_codes(observed.query, queries, 0);
  check_codes(observed.state, states, 0);
  for (std::size_t at = 1; at < observed.query.size(); ++at)
    require(observed.query[at - 1] < observed.query[at] ||
                (observed.query[at - 1] == observed.query[at] && observed.state[at - 1] < observed.state[at]),
            "outputs must stand by query, then by state, each once");
  return observed;
}

resolvent::TransitionTable checked_table(const Ids& transitions, Id states, Id labels) {
  require(states >= 1 && labels >= 0, "a machine needs at least one state");
  require(transitions.size() == static_cast<std::size_t>(states) * static_cast<std::size_t>(labels),
          "transitions must hold one row of `labels` targets per state");
  check_codes(span_of(transitions), states, resolvent::none);
  return {span_of(transitions), states, labels};
}

nb::dict separate(const Ids& query, const Ids& state, const Ids& output, const Rows& count, const Rows& step,
                  const Ids& transitions, Id states, Id labels, const nb::object& progress) {
  const resolvent::TransitionTable table = checked_table(transitions, states, labels);
  const resolvent::ObservedOutputs observed =
      checked_outputs(query, state, output, states, std::numeric_limits<Id>::max());
  require(count.size() == query.size() && step.size() == query.size(), "the columns must be equally long");
  resolvent::Watch watch(listener(progress), 0);
  resolvent::Separations result;
  {
    nb::gil_scoped_release no_gil;
    result = resolvent::separate(observed, span_of(count), span_of(step), table, watch);
  }
  nb::dict out;
  out["depth"] = array(std::move(result.depth));
  out["label"] = array(std::move(result.label));
  out["queries"] = array(std::move(result.queries));
  out["support"] = array(std::move(result.support));
  out["lower"] = array(std::move(result.lower));
  out["higher"] = array(std::move(result.higher));
  return out;
}

// Return the number of label sequences, of those that converge, and for the first that does not, its node,
// its state and another state.
nb::tuple converge(const resolvent::HistoryTree& histories, const Ids& row_query, const Ids& row_output,
                   const Ids& query, const Ids& state, const Ids& output, Id queries, const Ids& transitions, Id states,
                   Id labels, const nb::object& progress) {
  const resolvent::TransitionTable table = checked_table(transitions, states, labels);
  const resolvent::ObservedOutputs observed = checked_outputs(query, state, output, states, queries);
  require(row_query.size() == histories.node_of_row.size() && row_output.size() == row_query.size(),
          "row_query, row_output and beta must be equally long");
  check_codes(span_of(row_query), queries, resolvent::none);
  resolvent::Watch watch(listener(progress), 0);
  resolvent::Convergence result;
  {
    nb::gil_scoped_release no_gil;
    result = resolvent::converge(histories, span_of(row_query), span_of(row_output), observed, queries, table, watch);
  }
  return nb::make_tuple(result.histories, result.converging, result.node, result.state, result.other);
}

}  // namespace

void bind_evaluation(nb::module_& module) {
  module.def("separate", &separate, "query"_a, "state"_a, "output"_a, nb::kw_only(), "count"_a, "step"_a,
             "transitions"_a, "states"_a, "labels"_a, "progress"_a.none() = nb::none());
  module.def("converge", &converge, "histories"_a, "row_query"_a, "row_output"_a, nb::kw_only(), "query"_a, "state"_a,
             "output"_a, "queries"_a, "transitions"_a, "states"_a, "labels"_a, "progress"_a.none() = nb::none());
}
