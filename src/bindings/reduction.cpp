// Deleting labels from histories, for Python. Arrays come from `SampleSet`; that
// they fit together is checked here all the same.

#include <nanobind/stl/vector.h>

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "arrays.hpp"
#include "prefix_tree.hpp"
#include "trivial.hpp"

using resolvent::HistoryTree;

namespace {

// A column of a tree; the tree lives as long as the array does.
nb::object column_of(const nb::object& tree, const std::vector<Id>& values) {
  return nb::cast(nb::ndarray<nb::numpy, const Id, nb::ndim<1>>(values.data(), {values.size()}, tree));
}

nb::tuple history_columns(const nb::object& tree) {
  const auto& histories = nb::cast<const HistoryTree&>(tree);
  return nb::make_tuple(column_of(tree, histories.node_of_row), column_of(tree, histories.parent),
                        column_of(tree, histories.label));
}

// For each label named: the two rows that contradict each other without it, or
// None; agreements; bits and occurrences by context. The samples must not
// contradict each other before.
nb::list delete_labels(const HistoryTree& histories, const Ids& alpha, const Ids& output, const std::vector<Id>& named,
                       Id labels) {
  const resolvent::Answers answers{span_of(alpha), span_of(output)};
  require(answers.alpha.size() == histories.node_of_row.size() && answers.output.size() == answers.alpha.size(),
          "alpha, output and beta must be equally long");
  for (std::size_t row = 0; row < answers.alpha.size(); ++row)
    require(answers.alpha[row] == resolvent::none || (answers.alpha[row] >= 0 && answers.output[row] >= 0),
            "a row with an alpha needs an output of at least 0");
  const auto known = [&](Id label) { return label < labels; };
  require(std::ranges::all_of(named, [&](Id label) { return label >= 0 && known(label); }), "there is no such label");
  require(std::ranges::all_of(histories.label, known), "a label is out of range");
  std::vector<resolvent::Deletion> found;
  {
    nb::gil_scoped_release no_gil;
    const auto built = resolvent::build_prefix_tree(histories, answers);
    if (const auto* tree = std::get_if<resolvent::PrefixTree>(&built))
      found = resolvent::delete_labels(*tree, answers, named, labels);
  }
  require(found.size() == named.size(), "the samples contradict each other");
  nb::list out;
  for (resolvent::Deletion& one : found) {
    nb::object rows = nb::none();
    if (one.contradiction) rows = nb::make_tuple(one.contradiction->first, one.contradiction->second);
    out.append(nb::make_tuple(rows, one.agreements, array(std::move(one.bits)), array(std::move(one.occurrences))));
  }
  return out;
}

}  // namespace

void bind_trivial(nb::module_& module) {
  module.def("history_columns", &history_columns, "histories"_a);
  module.def("delete_labels", &delete_labels, "histories"_a, "alpha"_a, "output"_a,
             "named"_a, "labels"_a);
}
