// The search for the smallest machine for Python.

#include "search.hpp"

#include <nanobind/stl/optional.h>

#include <optional>

#include "learning.hpp"
#include "output_tree.hpp"

namespace {

nb::dict search(const resolvent::HistoryTree& histories, const Ids& alpha, const Ids& output, std::uint64_t seed,
                std::int64_t budget, double time_limit, const nb::object& progress, const std::optional<Ids>& known,
                Id labels, bool merges) {
  require(budget >= 0, "the budget must be at least 0");
  resolvent::SearchOptions options{seed, budget, {}, merges};
  if (known) {
    const auto table = span_of(*known);
    require(labels > 0 && !table.empty() && table.size() % static_cast<std::size_t>(labels) == 0,
            "known must hold one row of `labels` targets per state");
    const auto states = static_cast<std::int64_t>(table.size()) / labels;
    require(states <= histories.size(), "known has more states than there are histories");
    check_codes(table, states, resolvent::none);
    for (const Id label : histories.label) require(label < labels, "a history reads an unknown label");
    options.known = resolvent::states_under(histories, table, labels);
  }
  const auto learner = [&](const resolvent::PrefixTree& tree, resolvent::Watch& watch) {
    return resolvent::search_states(tree, options, watch);
  };
  return learn_with(learner, histories, alpha, output, time_limit, progress);
}

}  // namespace

void bind_search(nb::module_& module) {
  module.def("search", &search, "histories"_a, "alpha"_a, "output"_a, nb::kw_only(), "seed"_a, "budget"_a,
             "time_limit"_a = 0.0, "progress"_a.none() = nb::none(), "known"_a.none() = nb::none(), "labels"_a = 0,
             "merges"_a = true);
}
