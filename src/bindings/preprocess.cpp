// Preprocessing for Python: event discovery and the deletion of labels.

#include <nanobind/stl/vector.h>

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "arrays.hpp"
#include "latent_expectation.hpp"
#include "output_counts.hpp"
#include "prefix_tree.hpp"
#include "trivial.hpp"

using resolvent::HistoryTree;

namespace {

using Numbers = Column<float>;

void check(const Ids& source, const Ids& output, const Rows& offsets, Id states, const Numbers& transitions,
           const Numbers& outputs) {
  require(states >= 1 && states <= resolvent::most_latent_states, "there must be 1 to 32 states");
  const auto width = static_cast<std::size_t>(states);
  require(transitions.size() % (width * width) == 0 && outputs.size() % width == 0, "the tables do not fit the states");
  require(source.size() == output.size(), "source and output must be equally long");
  check_offsets(span_of(offsets), source.size());
  check_codes(span_of(source), static_cast<std::int64_t>(transitions.size() / (width * width)), resolvent::none);
  check_codes(span_of(output), static_cast<std::int64_t>(outputs.size() / width), resolvent::none);
}

nb::tuple expected_transitions(const Ids& source, const Ids& output, const Rows& offsets, Id states,
                               const Numbers& transitions, const Numbers& outputs) {
  check(source, output, offsets, states, transitions, outputs);
  std::vector<double> transition_counts(transitions.size());
  std::vector<double> output_counts(outputs.size());
  double log_likelihood = 0.0;
  {
    nb::gil_scoped_release no_gil;
    log_likelihood =
        resolvent::expect_transitions({span_of(source), span_of(output), span_of(offsets)}, states,
                                      {span_of(transitions), span_of(outputs)}, {transition_counts, output_counts});
  }
  return nb::make_tuple(log_likelihood, array(std::move(transition_counts)), array(std::move(output_counts)));
}

nb::object output_counts(const Ids& source, const Ids& output, const Rows& offsets, const Ids& table, Id states,
                         Id outputs) {
  require(source.size() == output.size(), "source and output must be equally long");
  require(states >= 1 && table.size() % static_cast<std::size_t>(states) == 0, "the table does not fit the states");
  check_offsets(span_of(offsets), source.size());
  check_codes(span_of(table), states, 0);
  check_codes(span_of(source), static_cast<std::int64_t>(table.size()) / states, resolvent::none);
  check_codes(span_of(output), outputs, resolvent::none);
  std::vector<std::int64_t> counts;
  {
    nb::gil_scoped_release no_gil;
    counts =
        resolvent::output_counts({span_of(source), span_of(output), span_of(offsets)}, span_of(table), states, outputs);
  }
  return nb::cast(array(std::move(counts)));
}

nb::object output_counts_after(const Ids& source, const Ids& output, const Rows& offsets, const Ids& states, Id state,
                               Id sources, Id outputs) {
  require(source.size() == output.size() && source.size() == states.size(), "the columns must be equally long");
  check_offsets(span_of(offsets), source.size());
  check_codes(span_of(source), sources, resolvent::none);
  check_codes(span_of(output), outputs, resolvent::none);
  std::vector<std::int64_t> counts;
  {
    nb::gil_scoped_release no_gil;
    counts = resolvent::output_counts_after({span_of(source), span_of(output), span_of(offsets)}, span_of(states),
                                            state, sources, outputs);
  }
  return nb::cast(array(std::move(counts)));
}

// A column of a tree; the array keeps the tree alive.
nb::object column_of(const nb::object& tree, const std::vector<Id>& values) {
  return nb::cast(nb::ndarray<nb::numpy, const Id, nb::ndim<1>>(values.data(), {values.size()}, tree));
}

nb::tuple history_columns(const nb::object& tree) {
  const auto& histories = nb::cast<const HistoryTree&>(tree);
  return nb::make_tuple(column_of(tree, histories.node_of_row), column_of(tree, histories.parent),
                        column_of(tree, histories.label));
}

// For each named label: the two rows that contradict each other without it, or None; agreements; bits and
// occurrences by context. The samples must be free of contradictions.
nb::list delete_labels(const HistoryTree& histories, const Ids& alpha, const Ids& output, const std::vector<Id>& named,
                       Id labels) {
  const resolvent::Outputs outputs{span_of(alpha), span_of(output)};
  require(outputs.alpha.size() == histories.node_of_row.size() && outputs.output.size() == outputs.alpha.size(),
          "alpha, output and beta must be equally long");
  for (std::size_t row = 0; row < outputs.alpha.size(); ++row)
    require(outputs.alpha[row] == resolvent::none || (outputs.alpha[row] >= 0 && outputs.output[row] >= 0),
            "a row with an alpha needs an output of at least 0");
  const auto known = [&](Id label) { return label < labels; };
  require(std::ranges::all_of(named, [&](Id label) { return label >= 0 && known(label); }), "there is no such label");
  require(std::ranges::all_of(histories.label, known), "a label is out of range");
  std::vector<resolvent::Deletion> result;
  {
    nb::gil_scoped_release no_gil;
    const auto built = resolvent::build_prefix_tree(histories, outputs);
    if (const auto* tree = std::get_if<resolvent::PrefixTree>(&built))
      result = resolvent::delete_labels(*tree, outputs, named, labels);
  }
  require(result.size() == named.size(), "the samples contradict each other");
  nb::list out;
  for (resolvent::Deletion& deletion : result) {
    nb::object rows = nb::none();
    if (deletion.contradiction) rows = nb::make_tuple(deletion.contradiction->first, deletion.contradiction->second);
    out.append(nb::make_tuple(rows, deletion.agreements, array(std::move(deletion.bits)),
                              array(std::move(deletion.occurrences))));
  }
  return out;
}

}  // namespace

void bind_preprocess(nb::module_& module) {
  module.def("expected_transitions", &expected_transitions, "source"_a, "output"_a, "offsets"_a, nb::kw_only(), "states"_a,
             "transitions"_a, "outputs"_a);
  module.def("output_counts_after", &output_counts_after, "source"_a, "output"_a, "offsets"_a, "states"_a, nb::kw_only(),
             "state"_a, "sources"_a, "outputs"_a);
  module.def("output_counts", &output_counts, "source"_a, "output"_a, "offsets"_a, nb::kw_only(), "table"_a, "states"_a,
             "outputs"_a);
  module.def("history_columns", &history_columns, "histories"_a);
  module.def("delete_labels", &delete_labels, "histories"_a, "alpha"_a, "output"_a, "named"_a, "labels"_a);
}
