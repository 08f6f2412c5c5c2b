// Expected layers along traces, as Python sees them.

#include "baum_welch.hpp"

#include "arrays.hpp"

namespace {

using Numbers = Column<double>;

// Every move must have its table, and every trace a move.
void check_moves(const resolvent::Moves& moves, std::size_t onward, std::size_t paid) {
  check_offsets(moves.offsets, moves.move.size());
  require(moves.paid.size() + 1 == moves.offsets.size(), "paid must hold one entry per trace");
  for (std::size_t trace = 0; trace < moves.paid.size(); ++trace) {
    const auto first = static_cast<std::size_t>(moves.offsets[trace]);
    const auto last = static_cast<std::size_t>(moves.offsets[trace + 1]);
    require(first < last, "a trace has no moves");
    const std::size_t ends = moves.paid[trace] != 0 ? 1 : 0;
    check_codes(moves.move.subspan(first, last - first - ends), static_cast<std::int64_t>(onward), 0);
    check_codes(moves.move.subspan(last - ends, ends), static_cast<std::int64_t>(paid), 0);
  }
}

nb::tuple expected_layers(const Ids& move, const Rows& offsets, const Ids& paid, Id layers, const Numbers& onward,
                          const Numbers& ending) {
  require(layers >= 1, "there must be at least one layer");
  const auto width = static_cast<std::size_t>(layers);
  require(onward.size() % (width * width) == 0 && ending.size() % width == 0, "the tables do not fit the layers");
  const resolvent::Moves moves{span_of(move), span_of(offsets), span_of(paid)};
  check_moves(moves, onward.size() / (width * width), ending.size() / width);
  std::vector<double> onward_counts(onward.size());
  std::vector<double> ending_counts(ending.size());
  double log_likelihood = 0.0;
  {
    nb::gil_scoped_release no_gil;
    log_likelihood =
        resolvent::expect(moves, layers, {span_of(onward), span_of(ending)}, {onward_counts, ending_counts});
  }
  return nb::make_tuple(log_likelihood, array(std::move(onward_counts)), array(std::move(ending_counts)));
}

}  // namespace

void bind_baum_welch(nb::module_& module) {
  module.def("expected_layers", &expected_layers, "move"_a, "offsets"_a, "paid"_a, nb::kw_only(), "layers"_a,
             "onward"_a, "ending"_a);
}
