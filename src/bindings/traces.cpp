// Columns of tables on their way to traces.

#include <nanobind/stl/vector.h>

#include <optional>

#include "arrays.hpp"
#include "table_rows.hpp"

namespace {

std::vector<std::span<const Row>> checked(const std::vector<Rows>& columns, std::size_t rows) {
  std::vector<std::span<const Row>> out;
  for (const Rows& one : columns) {
    require(one.size() == rows, "the columns must be equally long");
    out.push_back(span_of(one));
  }
  return out;
}

nb::object starts_in_order(const std::vector<Rows>& episode, const std::vector<Rows>& time, std::size_t rows) {
  const auto episodes = checked(episode, rows);
  const auto times = checked(time, rows);
  std::optional<std::vector<Row>> starts;
  {
    nb::gil_scoped_release no_gil;
    starts = resolvent::starts_in_order(episodes, times, rows);
  }
  return starts ? nb::cast(array(std::move(*starts))) : nb::none();
}

nb::object distinct_integers(const Rows& numbers, std::size_t most) {
  std::optional<resolvent::Distinct> found;
  {
    nb::gil_scoped_release no_gil;
    found = resolvent::distinct_integers(span_of(numbers), most);
  }
  if (!found) return nb::none();
  return nb::make_tuple(array(std::move(found->values)), array(std::move(found->codes)));
}

nb::object with_inserted(const Ids& codes, const Rows& at, Id code) {
  Row before = 0;
  for (const Row place : span_of(at)) {
    require(place >= before && place <= static_cast<Row>(codes.size()), "places must not fall, and lie within");
    before = place;
  }
  std::vector<Id> out;
  {
    nb::gil_scoped_release no_gil;
    out = resolvent::with_inserted(span_of(codes), span_of(at), code);
  }
  return nb::cast(array(std::move(out)));
}

}  // namespace

void bind_traces(nb::module_& module) {
  module.def("starts_in_order", &starts_in_order, "episode"_a, "time"_a, "rows"_a);
  module.def("distinct_integers", &distinct_integers, "numbers"_a, "most"_a);
  module.def("with_inserted", &with_inserted, "codes"_a, "at"_a, "code"_a);
}
