// The Python module: checks arguments, releases the GIL, and returns arrays without copying.

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "arrays.hpp"
#include "blocks.hpp"
#include "columns.hpp"
#include "completion.hpp"
#include "folding.hpp"
#include "learning.hpp"
#include "prefix_tree.hpp"
#include "red_blue.hpp"
#include "replay.hpp"
#include "samples.hpp"
#include "watch.hpp"

void bind_util(nb::module_& module);
void bind_baum_welch(nb::module_& module);
void bind_build(nb::module_& module);
void bind_rollout(nb::module_& module);
void bind_exploration(nb::module_& module);
void bind_replay(nb::module_& module);
void bind_exact(nb::module_& module);
void bind_noise(nb::module_& module);
void bind_latent(nb::module_& module);
void bind_q_learning(nb::module_& module);
void bind_repair(nb::module_& module);
void bind_search(nb::module_& module);
void bind_evaluation(nb::module_& module);
void bind_traces(nb::module_& module);
void bind_preprocess(nb::module_& module);

namespace {

resolvent::Order order_named(const std::string& name) {
  if (name == "rpni") return resolvent::Order::rpni;
  if (name == "edsm") return resolvent::Order::edsm;
  if (name == "telling") return resolvent::Order::likelihood;
  if (name == "rethink") return resolvent::Order::backtracking;
  throw nb::value_error("order must be 'rpni', 'edsm', 'telling' or 'rethink'");
}

resolvent::HistoryTree build_history_tree(const Ids& beta, const Rows& offsets) {
  const resolvent::Labels labels = checked_labels(beta, offsets);
  const nb::object no_progress = nb::none();
  resolvent::Watch watch(listener(no_progress), 0);
  nb::gil_scoped_release no_gil;
  return resolvent::build_history_tree(labels, watch);
}

// Return the label sequence of a node.
std::vector<Id> history(const resolvent::HistoryTree& tree, Id node) {
  require(node >= 0 && node < tree.size(), "there is no such node");
  std::vector<Id> labels;
  for (; node > 0; node = tree.parent[static_cast<std::size_t>(node)])
    labels.push_back(tree.label[static_cast<std::size_t>(node)]);
  std::reverse(labels.begin(), labels.end());
  return labels;
}

nb::dict learn(const resolvent::HistoryTree& histories, const Ids& alpha, const Ids& output,
               const std::string& order_name, double time_limit, const nb::object& progress,
               std::optional<std::size_t> most_states, std::int64_t most_work) {
  const auto learner = [order = order_named(order_name), most = most_states.value_or(resolvent::unlimited_states)](
                           const resolvent::PrefixTree& tree, resolvent::Watch& watch) {
    return resolvent::merge_states(tree, order, watch, most);
  };
  return learn_with(learner, histories, alpha, output, time_limit, progress, most_work);
}

// Return an automaton from the states of interrupted merging.
nb::dict complete(const resolvent::HistoryTree& histories, const Ids& alpha, const Ids& output, const Ids& access,
                  const Ids& settled) {
  const auto state_of = span_of(settled);
  require(state_of.size() == static_cast<std::size_t>(histories.size()), "settled must tell the state of each node");
  check_codes(state_of, static_cast<std::int64_t>(access.size()), resolvent::none);
  check_codes(span_of(access), histories.size(), 0);
  require(state_of[0] == 0, "the first node must be settled as the first state");
  for (std::size_t node = 1; node < state_of.size(); ++node)
    require(state_of[node] == resolvent::none ||
                state_of[static_cast<std::size_t>(histories.parent[node])] != resolvent::none,
            "what is above a settled node must be settled");
  const auto completing = [&](const resolvent::PrefixTree& tree, resolvent::Watch&) {
    resolvent::Automaton so_far;
    so_far.access.assign(span_of(access).begin(), span_of(access).end());
    return resolvent::completed(tree, std::move(so_far), state_of);
  };
  return learn_with(completing, histories, alpha, output, 0, nb::none());
}

std::optional<std::pair<Row, Row>> find_contradiction(const resolvent::HistoryTree& histories, const Ids& alpha,
                                                      const Ids& output) {
  const resolvent::Outputs outputs = checked_outputs(alpha, output, histories);
  nb::gil_scoped_release no_gil;
  const auto built = resolvent::build_prefix_tree(histories, outputs);
  const auto* rows = std::get_if<resolvent::Contradiction>(&built);
  if (rows == nullptr) return std::nullopt;
  return std::pair(rows->first, rows->second);
}

nb::object tally_outputs(const Ids& alpha, const Ids& output, std::int64_t alphas) {
  require(alpha.size() == output.size(), "alpha and output must be equally long");
  check_codes(span_of(alpha), alphas, 0);
  check_ids(span_of(output), "output holds an id below -1");
  resolvent::Tally tally;
  {
    nb::gil_scoped_release no_gil;
    tally = resolvent::tally_outputs(span_of(alpha), span_of(output), static_cast<std::size_t>(alphas));
  }
  return nb::make_tuple(array(std::move(tally.output)), array(std::move(tally.count)), array(std::move(tally.varies)));
}

nb::object used_codes(const Ids& codes, std::int64_t size) {
  nb::gil_scoped_release no_gil;
  check_codes(span_of(codes), size, 0);
  auto used = resolvent::used_codes(span_of(codes), static_cast<std::size_t>(size));
  nb::gil_scoped_acquire gil;
  return nb::cast(array(std::move(used)));
}

nb::object distinct_pairs(const Ids& first, const Ids& second, std::int64_t firsts, std::int64_t seconds) {
  require(first.size() == second.size(), "the columns must be equally long");
  check_codes(span_of(first), firsts, 0);
  check_codes(span_of(second), seconds, 0);
  require(seconds == 0 || firsts <= std::numeric_limits<Id>::max() / seconds, "there are too many possible pairs");
  resolvent::Pairs pairs;
  {
    nb::gil_scoped_release no_gil;
    pairs = resolvent::distinct_pairs(span_of(first), span_of(second), static_cast<std::size_t>(firsts),
                                      static_cast<std::size_t>(seconds));
  }
  return nb::make_tuple(array(std::move(pairs.distinct)), array(std::move(pairs.position)));
}

nb::object numbered(const Rows& values) {
  require(values.size() <= static_cast<std::size_t>(std::numeric_limits<Id>::max()), "there are too many rows");
  resolvent::Numbered result;
  {
    nb::gil_scoped_release no_gil;
    result = resolvent::numbered(span_of(values));
  }
  return nb::make_tuple(array(std::move(result.first)), array(std::move(result.number)));
}

nb::object recode(const Ids& codes, const Ids& table) {
  CodeBlock out(codes.size());
  {
    nb::gil_scoped_release no_gil;
    check_codes(span_of(codes), static_cast<std::int64_t>(table.size()), resolvent::none);
    resolvent::recode(span_of(codes), span_of(table), out.codes());
  }
  return out.to_python();
}

nb::object walk_states(const Ids& transitions, Id labels, const Ids& beta, const Rows& offsets) {
  const auto table = span_of(transitions);
  checked_states(table, labels);
  check_offsets(span_of(offsets), beta.size());
  check_ids(span_of(beta), "beta holds an id below -1");
  std::vector<Id> out(beta.size());
  {
    nb::gil_scoped_release no_gil;
    resolvent::walk_states(table, labels, span_of(beta), span_of(offsets), out);
  }
  return nb::cast(array(std::move(out)));
}

// A prefix tree folded step by step, to test folds.
class SteppedFolding {
 public:
  SteppedFolding(const Ids& alpha, const Ids& output, const Ids& beta, const Rows& offsets)
      : watch_(nullptr, 0),
        histories_(resolvent::build_history_tree(checked_labels(beta, offsets), watch_)),
        tree_(build(checked_outputs(alpha, output, histories_))),
        folding_(tree_) {
    folding_.make_red(0);
  }
  SteppedFolding(const SteppedFolding&) = delete;

  void promote(Id state) {
    keep();
    require(state >= 0 && state < folding_.size() && folding_.is_blue(state), "only a blue state can be promoted");
    folding_.make_red(state);
  }

  std::optional<std::int64_t> try_fold(Id red, Id blue) {
    require(red >= 0 && red < folding_.size() && folding_.is_red(red), "red is not a red state");
    require(blue >= 0 && blue < folding_.size(), "blue is not a blue state");
    keep();
    require(folding_.is_blue(blue), "blue is not a blue state");
    const auto score = folding_.try_fold(red, blue, watch_);
    can_undo_ = score.has_value();
    return score;
  }

  void undo() {
    require(can_undo_, "there is no fold to undo");
    folding_.undo();
    can_undo_ = false;
  }

  // For each tree node: the node it was merged into, its children, its outputs.
  auto snapshot() const {
    using Symbols = std::vector<std::pair<Id, Id>>;
    std::vector<std::tuple<Id, Symbols, Symbols>> nodes;
    std::vector<resolvent::Child> children;
    std::vector<resolvent::Output> outputs;
    for (Id node = 0; node < folding_.size(); ++node) {
      folding_.children(node, children);
      folding_.outputs(node, outputs);
      auto& [into, edges, pairs] = nodes.emplace_back(folding_.merged_into(node), Symbols{}, Symbols{});
      for (const auto& child : children) edges.emplace_back(child.label, child.state);
      for (const auto& output : outputs) pairs.emplace_back(output.alpha, output.output);
    }
    return nodes;
  }

 private:
  // A fold that was not undone before the next step is kept.
  void keep() {
    if (can_undo_) folding_.keep();
    can_undo_ = false;
  }

  resolvent::PrefixTree build(const resolvent::Outputs& outputs) const {
    auto built = resolvent::build_prefix_tree(histories_, outputs);
    require(std::holds_alternative<resolvent::PrefixTree>(built), "the samples contradict each other");
    return std::get<resolvent::PrefixTree>(std::move(built));
  }

  resolvent::Watch watch_;
  resolvent::HistoryTree histories_;
  resolvent::PrefixTree tree_;
  resolvent::FoldingTree folding_;
  bool can_undo_ = false;
};

}  // namespace

NB_MODULE(_core, module) {
  module.doc() = "Resolvent's compiled core: prefix trees, state merging and replay over flat arrays.";
  nb::set_leak_warnings(false);

  nb::class_<resolvent::HistoryTree>(module, "HistoryTree")
      .def("__len__", &resolvent::HistoryTree::size)
      .def("history", &history, "node"_a);
  module.def("build_history_tree", &build_history_tree, "beta"_a, "offsets"_a);
  module.def("learn", &learn, "histories"_a, "alpha"_a, "output"_a, nb::kw_only(), "order"_a, "time_limit"_a = 0.0,
             "progress"_a.none() = nb::none(), "most_states"_a.none() = nb::none(), "most_work"_a = 0);
  module.def("complete", &complete, "histories"_a, "alpha"_a, "output"_a, "access"_a, "settled"_a);
  module.def("find_conflict", &find_contradiction, "histories"_a, "alpha"_a, "output"_a);
  module.def("tally_outputs", &tally_outputs, "alpha"_a, "output"_a, "alphas"_a);
  module.def("used_codes", &used_codes, "codes"_a, "size"_a);
  module.def("distinct_pairs", &distinct_pairs, "first"_a, "second"_a, "firsts"_a, "seconds"_a);
  module.def("numbered", &numbered, "values"_a);
  module.def("recode", &recode, "codes"_a, "table"_a);
  module.def("walk_states", &walk_states, "transitions"_a, "labels"_a, "beta"_a, "offsets"_a);

  bind_util(module);
  bind_baum_welch(module);
  bind_build(module);
  bind_rollout(module);
  bind_exploration(module);
  bind_replay(module);
  bind_exact(module);
  bind_noise(module);
  bind_latent(module);
  bind_q_learning(module);
  bind_repair(module);
  bind_search(module);
  bind_evaluation(module);
  bind_traces(module);
  bind_preprocess(module);

  nb::class_<SteppedFolding>(module, "SteppedFolding")
      .def(nb::init<const Ids&, const Ids&, const Ids&, const Rows&>(), "alpha"_a, "output"_a, "beta"_a, "offsets"_a)
      .def("promote", &SteppedFolding::promote, "state"_a)
      .def("try_fold", &SteppedFolding::try_fold, "red"_a, "blue"_a)
      .def("undo", &SteppedFolding::undo)
      .def("snapshot", &SteppedFolding::snapshot);
}
