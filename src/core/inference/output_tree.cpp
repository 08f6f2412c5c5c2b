#include "output_tree.hpp"

#include <utility>

#include "pair_map.hpp"

namespace resolvent {
namespace {

// Index of (state, label) in a table.
std::size_t entry(Id state, Id label, Id labels) { return index(state) * index(labels) + index(label); }

}  // namespace

OutputTree output_tree(const PrefixTree& tree, Id labels) {
  const HistoryTree& histories = tree.histories;
  const auto nodes = index(tree.size());
  std::vector<char> kept(nodes, 0);
  kept[0] = 1;
  for (std::size_t node = nodes; node-- > 1;) {  // children come after their parents
    if (tree.first_output[node] < tree.first_output[node + 1]) kept[node] = 1;
    if (kept[node] != 0) kept[index(histories.parent[node])] = 1;
  }

  OutputTree out;
  out.labels = labels;
  std::vector<Id> number(nodes, none);
  PairMap alphas;
  PairMap outputs;
  for (std::size_t node = 0; node < nodes; ++node) {
    if (kept[node] == 0) continue;
    number[node] = out.size();
    out.parent.push_back(node == 0 ? none : number[index(histories.parent[node])]);
    out.label.push_back(histories.label[node]);
    out.first_output.push_back(out.alpha.size());
    for (auto at = tree.first_output[node]; at < tree.first_output[node + 1]; ++at) {
      const Output seen = tree.outputs[at];
      Id& alpha = alphas.at(0, seen.alpha);
      if (alpha == none) alpha = out.alphas++;
      Id& output = outputs.at(seen.alpha, seen.output);
      if (output == none) output = out.outputs++;
      out.alpha.push_back(alpha);
      out.output.push_back(output);
    }
  }
  out.first_output.push_back(out.alpha.size());
  return out;
}

std::vector<Id> canonical(const OutputTree& tree, std::span<const Id> table) {
  const Id labels = tree.labels;
  std::vector<Id> number(labels == 0 ? 1 : table.size() / index(labels), none);
  std::vector<Id> settled(index(labels), none);
  std::vector<Id> state(index(tree.size()), 0);
  Id n_states = 1;
  number[0] = 0;
  for (Id node = 1; node < tree.size(); ++node) {
    const Id above = state[index(tree.parent[index(node)])];
    const Id label = tree.label[index(node)];
    const Id here = table[entry(above, label, labels)];
    state[index(node)] = here;
    if (number[index(here)] == none) {
      number[index(here)] = n_states++;
      settled.resize(index(n_states) * index(labels), none);
    }
    settled[entry(number[index(above)], label, labels)] = number[index(here)];
  }
  return settled;
}

std::vector<Id> states_under(const HistoryTree& histories, std::span<const Id> table, Id labels) {
  std::vector<Id> state(index(histories.size()), 0);
  for (std::size_t node = 1; node < state.size(); ++node) {
    const Id target = table[entry(state[index(histories.parent[node])], histories.label[node], labels)];
    state[node] = target == none ? 0 : target;
  }
  return state;
}

std::optional<Conflict> first_conflict(std::span<const Id> table, Id labels, const Labels& read,
                                       const Outputs& outputs) {
  PairMap position;  // (state, alpha) → position in `first`
  std::vector<Row> first;
  for (std::size_t trace = 0; trace + 1 < read.offsets.size(); ++trace) {
    Id state = 0;
    for (Row row = read.offsets[trace]; row < read.offsets[trace + 1]; ++row) {
      const auto at = static_cast<std::size_t>(row);
      if (read.beta[at] != none) state = table[entry(state, read.beta[at], labels)];
      if (outputs.alpha[at] == none) continue;
      Id& known = position.at(state, outputs.alpha[at]);
      if (known == none) {
        known = static_cast<Id>(first.size());
        first.push_back(row);
      } else if (const Row before = first[index(known)];
                 outputs.output[static_cast<std::size_t>(before)] != outputs.output[at]) {
        return Conflict{before, row};
      }
    }
  }
  return std::nullopt;
}

}  // namespace resolvent
