// What exploring asks of all steps at once.

#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>

#include <limits>
#include <tuple>

#include "arrays.hpp"
#include "clashes.hpp"

namespace {

// How many steps clash, how many are in no state, and the first that clashes with the one before it.
std::tuple<Row, Row, Row, Row> find_clashes(const Ids& transitions, Id labels, const Ids& read, const Rows& offsets,
                                            const Ids& question, std::int64_t questions, const Ids& answer,
                                            const Ids& beside, std::int64_t besides, bool any) {
  const std::size_t states = checked_states(span_of(transitions), labels);
  check_offsets(span_of(offsets), read.size());
  require(read.size() <= static_cast<std::size_t>(std::numeric_limits<Id>::max()), "there are too many steps");
  require(question.size() == read.size() && answer.size() == read.size() &&
              (beside.size() == 0 || beside.size() == read.size()),
          "the columns must be equally long");
  check_ids(span_of(read), "read holds an id below -1");
  check_codes(span_of(question), questions, 0);
  check_codes(span_of(beside), besides, resolvent::none);
  require(besides >= 1, "the other machine needs at least one state");
  const auto most = std::numeric_limits<std::int64_t>::max() / std::max<std::int64_t>(questions, 1);
  require(static_cast<std::int64_t>(states) <= most / besides, "there are too many possible questions");
  const resolvent::AskedSteps steps{span_of(read), span_of(offsets), span_of(question), span_of(answer),
                                    static_cast<std::size_t>(questions)};
  nb::gil_scoped_release no_gil;
  const auto found = resolvent::find_clashes(span_of(transitions), labels, steps,
                                             {span_of(beside), static_cast<std::size_t>(besides)}, any);
  return {found.count, found.lost, found.bad, found.witness};
}

}  // namespace

void bind_exploring(nb::module_& module) {
  module.def("find_clashes", &find_clashes, "transitions"_a, "labels"_a, "read"_a, "offsets"_a, "question"_a,
             "questions"_a, "answer"_a, "beside"_a, "besides"_a, "any"_a);
}
