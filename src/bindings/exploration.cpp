// Conflict checks of exploration for Python.

#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>

#include <limits>
#include <tuple>

#include "arrays.hpp"
#include "conflicts.hpp"

namespace {

// Holds references to the arrays, and what was checked about them.
class QueriedSteps {
 public:
  QueriedSteps(Ids read, Rows offsets, Ids query, std::int64_t queries)
      : read_(std::move(read)),
        offsets_(std::move(offsets)),
        query_(std::move(query)),
        queries_(queries),
        steps_(span_of(read_), span_of(offsets_), span_of(query_), static_cast<std::size_t>(queries)) {
    check_offsets(span_of(offsets_), read_.size());
    require(read_.size() <= static_cast<std::size_t>(std::numeric_limits<Id>::max()), "there are too many steps");
    require(query_.size() == read_.size(), "the columns must be equally long");
    check_ids(span_of(read_), "read holds an id below -1");
    check_codes(span_of(query_), queries, 0);
  }

  // Return the number of conflicts, of steps without a state, the first conflict and the step before it.
  std::tuple<Row, Row, Row, Row> conflicts(const Ids& transitions, Id labels, const Ids& output, const Ids& condition,
                                           std::int64_t condition_states, Row enough) {
    const auto states = static_cast<std::int64_t>(checked_states(span_of(transitions), labels));
    require(output.size() == read_.size() && (condition.size() == 0 || condition.size() == read_.size()),
            "the columns must be equally long");
    require(condition_states >= 1, "the other machine needs at least one state");
    check_codes(span_of(condition), condition_states, resolvent::none);
    const auto most = std::numeric_limits<std::int64_t>::max() / std::max<std::int64_t>(queries_, 1);
    require(states <= most / condition_states, "there are too many possible queries");
    // Keeps the GIL, since it changes the object and is fast.
    const auto result = steps_.conflicts(span_of(transitions), labels, span_of(output),
                                         {span_of(condition), static_cast<std::size_t>(condition_states)}, enough);
    return {result.count, result.lost, result.bad, result.witness};
  }

 private:
  Ids read_;
  Rows offsets_;
  Ids query_;
  std::int64_t queries_;
  resolvent::QueriedSteps steps_;
};

}  // namespace

void bind_exploration(nb::module_& module) {
  nb::class_<QueriedSteps>(module, "QueriedSteps")
      .def(nb::init<Ids, Rows, Ids, std::int64_t>(), "read"_a, "offsets"_a, "query"_a, "queries"_a)
      .def("conflicts", &QueriedSteps::conflicts, "transitions"_a, "labels"_a, "output"_a, "condition"_a, "condition_states"_a,
           "enough"_a);
}
