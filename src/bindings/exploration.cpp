// What exploring asks of all steps at once.

#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>

#include <limits>
#include <tuple>

#include "arrays.hpp"
#include "clashes.hpp"

namespace {

// Holds on to the arrays, and to what was checked about them.
class AskedSteps {
 public:
  AskedSteps(Ids read, Rows offsets, Ids query, std::int64_t queries)
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

  // How many steps clash, how many are in no state, the first that clashes and the one before it.
  std::tuple<Row, Row, Row, Row> clashes(const Ids& transitions, Id labels, const Ids& answer, const Ids& beside,
                                         std::int64_t besides, Row enough) {
    const auto states = static_cast<std::int64_t>(checked_states(span_of(transitions), labels));
    require(answer.size() == read_.size() && (beside.size() == 0 || beside.size() == read_.size()),
            "the columns must be equally long");
    require(besides >= 1, "the other machine needs at least one state");
    check_codes(span_of(beside), besides, resolvent::none);
    const auto most = std::numeric_limits<std::int64_t>::max() / std::max<std::int64_t>(queries_, 1);
    require(states <= most / besides, "there are too many possible queries");
    // Others wait: it keeps what it found first, and is done soon.
    const auto found = steps_.clashes(span_of(transitions), labels, span_of(answer),
                                      {span_of(beside), static_cast<std::size_t>(besides)}, enough);
    return {found.count, found.lost, found.bad, found.witness};
  }

 private:
  Ids read_;
  Rows offsets_;
  Ids query_;
  std::int64_t queries_;
  resolvent::AskedSteps steps_;
};

}  // namespace

void bind_exploring(nb::module_& module) {
  nb::class_<AskedSteps>(module, "AskedSteps")
      .def(nb::init<Ids, Rows, Ids, std::int64_t>(), "read"_a, "offsets"_a, "query"_a, "queries"_a)
      .def("clashes", &AskedSteps::clashes, "transitions"_a, "labels"_a, "answer"_a, "beside"_a, "besides"_a,
           "enough"_a);
}
