// The search for the smallest machine, as Python sees it.

#include "search.hpp"

#include "learning.hpp"

namespace {

nb::dict search(const resolvent::HistoryTree& histories, const Ids& alpha, const Ids& output, std::uint64_t seed,
                std::int64_t budget, double time_limit, const nb::object& progress) {
  require(budget >= 0, "the budget must be at least 0");
  const resolvent::SearchOptions options{seed, budget};
  const auto learner = [&](const resolvent::PrefixTree& tree, resolvent::Pulse& pulse) {
    return resolvent::search_states(tree, options, pulse);
  };
  return learn_with(learner, histories, alpha, output, time_limit, progress);
}

}  // namespace

void bind_search(nb::module_& module) {
  module.def("search", &search, "histories"_a, "alpha"_a, "output"_a, nb::kw_only(), "seed"_a, "budget"_a,
             "time_limit"_a = 0.0, "progress"_a.none() = nb::none());
}
