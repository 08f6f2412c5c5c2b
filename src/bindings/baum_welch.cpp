// Baum-Welch expectation step for Python.

#include "baum_welch.hpp"

#include "arrays.hpp"

namespace {

using Numbers = Column<double>;

// Every step must have a table, and every trace a step.
void check_steps(const resolvent::LayerSteps& steps, std::size_t onward, std::size_t rewarded) {
  check_offsets(steps.offsets, steps.step.size());
  require(steps.rewarded.size() + 1 == steps.offsets.size(), "paid must hold one entry per trace");
  for (std::size_t trace = 0; trace < steps.rewarded.size(); ++trace) {
    const auto first = static_cast<std::size_t>(steps.offsets[trace]);
    const auto last = static_cast<std::size_t>(steps.offsets[trace + 1]);
    require(first < last, "a trace has no moves");
    const std::size_t ends = steps.rewarded[trace] != 0 ? 1 : 0;
    check_codes(steps.step.subspan(first, last - first - ends), static_cast<std::int64_t>(onward), 0);
    check_codes(steps.step.subspan(last - ends, ends), static_cast<std::int64_t>(rewarded), 0);
  }
}

nb::tuple expected_layers(const Ids& step, const Rows& offsets, const Ids& rewarded, Id layers, const Numbers& onward,
                          const Numbers& ending) {
  require(layers >= 1, "there must be at least one layer");
  const auto width = static_cast<std::size_t>(layers);
  require(onward.size() % (width * width) == 0 && ending.size() % width == 0, "the tables do not fit the layers");
  const resolvent::LayerSteps steps{span_of(step), span_of(offsets), span_of(rewarded)};
  check_steps(steps, onward.size() / (width * width), ending.size() / width);
  std::vector<double> onward_counts(onward.size());
  std::vector<double> ending_counts(ending.size());
  double log_likelihood = 0.0;
  {
    nb::gil_scoped_release no_gil;
    log_likelihood =
        resolvent::expect_layers(steps, layers, {span_of(onward), span_of(ending)}, {onward_counts, ending_counts});
  }
  return nb::make_tuple(log_likelihood, array(std::move(onward_counts)), array(std::move(ending_counts)));
}

}  // namespace

void bind_baum_welch(nb::module_& module) {
  module.def("expected_layers", &expected_layers, "move"_a, "offsets"_a, "paid"_a, nb::kw_only(), "layers"_a,
             "onward"_a, "ending"_a);
}
