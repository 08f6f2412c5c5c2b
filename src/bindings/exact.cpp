// Native parts of the exact search for Python.

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "learning.hpp"
#include "output_tree.hpp"
#include "red_blue.hpp"

namespace {

// Return the number of states of a table; its targets must exist.
Id states_of(std::span<const Id> table, Id labels, Id least) {
  require(labels == 0 ? table.empty() : !table.empty() && table.size() % static_cast<std::size_t>(labels) == 0,
          "the table must hold one row of `labels` targets per state");
  const auto states = labels == 0 ? Id{1} : static_cast<Id>(table.size() / static_cast<std::size_t>(labels));
  check_codes(table, states, least);
  return states;
}

resolvent::PrefixTree prefix_tree(const resolvent::HistoryTree& histories, const resolvent::Outputs& outputs) {
  auto built = resolvent::build_prefix_tree(histories, outputs);
  require(std::holds_alternative<resolvent::PrefixTree>(built), "the samples contradict each other");
  return std::get<resolvent::PrefixTree>(std::move(built));
}

resolvent::OutputTree output_tree(const resolvent::HistoryTree& histories, const Ids& alpha, const Ids& output,
                                  Id labels) {
  const resolvent::Outputs outputs = checked_outputs(alpha, output, histories);
  for (const Id label : histories.label) require(label < labels, "a history reads an unknown label");
  nb::gil_scoped_release no_gil;
  return resolvent::output_tree(prefix_tree(histories, outputs), labels);
}

nb::object canonical(const resolvent::OutputTree& tree, const Ids& table) {
  states_of(span_of(table), tree.labels, 0);
  return nb::cast(array(resolvent::canonical(tree, span_of(table))));
}

std::optional<std::pair<Row, Row>> first_conflict(const Ids& table, Id labels, const Ids& alpha, const Ids& output,
                                                  const Ids& beta, const Rows& offsets) {
  states_of(span_of(table), labels, 0);
  const resolvent::Labels read = checked_labels(beta, offsets);
  check_codes(read.beta, labels, resolvent::none);
  require(alpha.size() == beta.size() && output.size() == beta.size(), "alpha, output and beta must be equally long");
  check_ids(span_of(alpha), "alpha holds an id below -1");
  nb::gil_scoped_release no_gil;
  const auto conflict = resolvent::first_conflict(span_of(table), labels, read, {span_of(alpha), span_of(output)});
  if (!conflict) return std::nullopt;
  return std::pair(conflict->first, conflict->second);
}

// Return the automaton of a canonical table on these samples, as a dict of columns.
nb::dict merge_as(const resolvent::HistoryTree& histories, const Ids& alpha, const Ids& output, const Ids& table,
                  Id labels) {
  states_of(span_of(table), labels, resolvent::none);
  for (const Id label : histories.label) require(label < labels, "a history reads an unknown label");
  const nb::object no_progress = nb::none();
  const auto merge = [&](const resolvent::PrefixTree& tree, resolvent::Watch& watch) {
    return resolvent::merge_as(tree, resolvent::states_under(histories, span_of(table), labels), watch);
  };
  return learn_with(merge, histories, alpha, output, 0, no_progress);
}

}  // namespace

void bind_exact(nb::module_& module) {
  nb::class_<resolvent::OutputTree>(module, "OutputTree")
      .def("__len__", &resolvent::OutputTree::size)
      .def("canonical", &canonical, "table"_a);
  module.def("output_tree", &output_tree, "histories"_a, "alpha"_a, "output"_a, "labels"_a);
  module.def("first_conflict", &first_conflict, "table"_a, "labels"_a, "alpha"_a, "output"_a, "beta"_a, "offsets"_a);
  module.def("merge_as", &merge_as, "histories"_a, "alpha"_a, "output"_a, "table"_a, "labels"_a);
}
