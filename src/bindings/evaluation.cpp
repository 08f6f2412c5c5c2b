// What tells states apart, and which histories leave only one open, for Python.

#include <limits>
#include <utility>

#include "convergence.hpp"
#include "learning.hpp"
#include "separation.hpp"

namespace {

resolvent::Shown checked_shown(const Ids& query, const Ids& state, const Ids& output, Id states, Id queries) {
  const resolvent::Shown shown{span_of(query), span_of(state), span_of(output)};
  require(shown.state.size() == shown.query.size() && shown.output.size() == shown.query.size(),
          "the columns must be equally long");
  require(shown.state.size() < static_cast<std::size_t>(std::numeric_limits<Id>::max()), "there are too many answers");
  check_codes(shown.query, queries, 0);
  check_codes(shown.state, states, 0);
  for (std::size_t at = 1; at < shown.query.size(); ++at)
    require(shown.query[at - 1] < shown.query[at] ||
                (shown.query[at - 1] == shown.query[at] && shown.state[at - 1] < shown.state[at]),
            "answers must stand by query, then by state, each once");
  return shown;
}

resolvent::Leads checked_leads(const Ids& transitions, Id states, Id labels) {
  require(states >= 1 && labels >= 0, "a machine needs at least one state");
  require(transitions.size() == static_cast<std::size_t>(states) * static_cast<std::size_t>(labels),
          "transitions must hold one row of `labels` targets per state");
  check_codes(span_of(transitions), states, resolvent::none);
  return {span_of(transitions), states, labels};
}

nb::dict separate(const Ids& query, const Ids& state, const Ids& output, const Rows& count, const Rows& step,
                  const Ids& transitions, Id states, Id labels, const nb::object& progress) {
  const resolvent::Leads leads = checked_leads(transitions, states, labels);
  const resolvent::Shown shown = checked_shown(query, state, output, states, std::numeric_limits<Id>::max());
  require(count.size() == query.size() && step.size() == query.size(), "the columns must be equally long");
  resolvent::Pulse pulse(listener(progress), 0);
  resolvent::Separations found;
  {
    nb::gil_scoped_release no_gil;
    found = resolvent::separate(shown, span_of(count), span_of(step), leads, pulse);
  }
  nb::dict out;
  out["depth"] = array(std::move(found.depth));
  out["label"] = array(std::move(found.label));
  out["queries"] = array(std::move(found.queries));
  out["support"] = array(std::move(found.support));
  out["lower"] = array(std::move(found.lower));
  out["higher"] = array(std::move(found.higher));
  return out;
}

// Histories, how many of them converge, and of the first that does not its node,
// its state and another.
nb::tuple converge(const resolvent::HistoryTree& histories, const Ids& asked, const Ids& answered, const Ids& query,
                   const Ids& state, const Ids& output, Id queries, const Ids& transitions, Id states, Id labels, const nb::object& progress) {
  const resolvent::Leads leads = checked_leads(transitions, states, labels);
  const resolvent::Shown shown = checked_shown(query, state, output, states, queries);
  require(asked.size() == histories.node_of_row.size() && answered.size() == asked.size(),
          "asked, answered and beta must be equally long");
  check_codes(span_of(asked), queries, resolvent::none);
  resolvent::Pulse pulse(listener(progress), 0);
  resolvent::Convergence found;
  {
    nb::gil_scoped_release no_gil;
    found = resolvent::converge(histories, span_of(asked), span_of(answered), shown, queries, leads, pulse);
  }
  return nb::make_tuple(found.histories, found.converging, found.node, found.state, found.other);
}

}  // namespace

void bind_separation(nb::module_& module) {
  module.def("separate", &separate, "query"_a, "state"_a, "output"_a, nb::kw_only(), "count"_a, "step"_a,
             "transitions"_a, "states"_a, "labels"_a, "progress"_a.none() = nb::none());
  module.def("converge", &converge, "histories"_a, "asked"_a, "answered"_a, nb::kw_only(), "query"_a, "state"_a,
             "output"_a, "queries"_a, "transitions"_a, "states"_a, "labels"_a, "progress"_a.none() = nb::none());
}
