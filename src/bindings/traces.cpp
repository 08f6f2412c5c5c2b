// Columns of tables for Python.

#include <nanobind/stl/vector.h>

#include <optional>

#include "arrays.hpp"
#include "blocks.hpp"
#include "table_rows.hpp"

namespace {

std::vector<std::span<const Row>> checked(const std::vector<Rows>& columns, std::size_t rows) {
  std::vector<std::span<const Row>> out;
  for (const Rows& column : columns) {
    require(column.size() == rows, "the columns must be equally long");
    out.push_back(span_of(column));
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
  CodeBlock codes(numbers.size());
  std::optional<std::vector<Row>> distinct;
  {
    nb::gil_scoped_release no_gil;
    distinct = resolvent::distinct_integers(span_of(numbers), most, codes.codes());
  }
  if (!distinct) return nb::none();
  return nb::make_tuple(array(std::move(*distinct)), codes.to_python());
}

nb::object recode_with_inserted(const Ids& codes, const Ids& table, const Rows& at, Id inserted) {
  Row before = 0;
  for (const Row position : span_of(at)) {
    require(position >= before && position <= static_cast<Row>(codes.size()), "places must not fall, and lie within");
    before = position;
  }
  CodeBlock out(codes.size() + at.size());
  {
    nb::gil_scoped_release no_gil;
    check_codes(span_of(codes), static_cast<std::int64_t>(table.size()), 0);
    resolvent::recode_with_inserted(span_of(codes), span_of(table), span_of(at), inserted, out.codes());
  }
  return out.to_python();
}

nb::object repeated_code(Id code, std::size_t times) {
  CodeBlock out(times);
  std::ranges::fill(out.codes(), code);
  return out.to_python();
}

}  // namespace

void bind_traces(nb::module_& module) {
  module.def("starts_in_order", &starts_in_order, "episode"_a, "time"_a, "rows"_a);
  module.def("distinct_integers", &distinct_integers, "numbers"_a, "most"_a);
  module.def("recode_with_inserted", &recode_with_inserted, "codes"_a, "table"_a, "at"_a, "inserted"_a);
  module.def("repeated_code", &repeated_code, "code"_a, "times"_a);
}
