#include "tree_merging.hpp"

#include <algorithm>
#include <limits>

namespace resolvent {
namespace {

constexpr double contradiction = 6.0;  // a merge that costs more creates a state instead

}  // namespace

TreeMerging::TreeMerging(const NoisyTree& tree, const NoiseShape& noise, Watch& watch)
    : tree_(tree),
      score_(tree.cells, noise),
      watch_(watch),
      rows_(tree.histories.parent.size()),
      children_(tree.histories.parent.size()),
      saved_at_(tree.histories.parent.size()) {
  for (std::size_t node = 0; node < rows_.size(); ++node) {
    for (std::size_t at = tree.first_output[node]; at < tree.first_output[node + 1]; ++at) {
      if (rows_[node].empty() || rows_[node].back().cell != tree.output[at])
        rows_[node].push_back({tree.output[at], 0});
      ++rows_[node].back().times;
    }
    for (Id below = tree.histories.first_child[node]; below < tree.histories.first_child[node + 1]; ++below)
      children_[node].emplace_back(tree.histories.label[index(below)], below);
    std::sort(children_[node].begin(), children_[node].end());
  }
}

// Score of the outputs of one query.
double TreeMerging::score_of(const Count* first, const Count* last) const {
  const auto query = index(tree_.cells.query[index(first->cell)]);
  double total = 0.0;
  double main = -std::numeric_limits<double>::infinity();
  Id queried = 0;
  for (const Count* each = first; each != last; ++each) {
    total += score_.others(index(each->cell), each->times);
    queried += each->times;
    main = std::max(main, score_.main(index(each->cell), each->times));
  }
  for (auto cell = index(tree_.cells.first[query]); cell < index(tree_.cells.first[query + 1]); ++cell)
    main = std::max(main, score_.main(cell, 0));
  return total + main - score_.anys(queried);
}

double TreeMerging::merge_rows(Row& into, const Row& from) const {
  if (from.empty()) return 0.0;
  const auto query_of = [&](const Count& count) { return tree_.cells.query[index(count.cell)]; };
  Row both;
  both.reserve(into.size() + from.size());
  double gain = 0.0;
  auto at = into.begin();
  for (auto from_at = from.begin(); from_at != from.end();) {
    const Id query = query_of(*from_at);
    while (at != into.end() && query_of(*at) < query) both.push_back(*at++);
    const auto before = at;
    while (at != into.end() && query_of(*at) == query) ++at;
    const auto begin = from_at;
    while (from_at != from.end() && query_of(*from_at) == query) ++from_at;
    if (before == at) {
      both.insert(both.end(), begin, from_at);
      continue;
    }
    const std::size_t start = both.size();
    std::merge(before, at, begin, from_at, std::back_inserter(both),
               [](const Count& first, const Count& second) { return first.cell < second.cell; });
    std::size_t last = start;
    for (std::size_t next = start + 1; next < both.size(); ++next) {
      if (both[next].cell == both[last].cell)
        both[last].times += both[next].times;
      else
        both[++last] = both[next];
    }
    both.resize(last + 1);
    gain += score_of(&both[start], &both[0] + both.size()) - score_of(&*before, &*before + (at - before)) -
            score_of(&*begin, &*begin + (from_at - begin));
  }
  both.insert(both.end(), at, into.end());
  into = std::move(both);
  return gain;
}

Id& TreeMerging::child(Id node, Id label) {
  auto& children = children_[index(node)];
  const auto position = std::lower_bound(children.begin(), children.end(), std::pair<Id, Id>{label, none});
  if (position != children.end() && position->first == label) return position->second;
  return children.insert(position, {label, none})->second;
}

void TreeMerging::save(Id node) {
  if (saved_at_[index(node)] == folds_) return;
  saved_at_[index(node)] = folds_;
  saved_.push_back({node, rows_[index(node)], children_[index(node)]});
}

double TreeMerging::fold(Id red, Id parent, Id label, bool undo) {
  ++folds_;
  saved_.clear();
  save(parent);
  const Id blue = child(parent, label);
  child(parent, label) = red;
  double gain = 0.0;
  std::vector<std::pair<Id, Id>> pairs{{red, blue}};
  // Below a blue node the graph is still a tree, so each node is visited once.
  for (std::size_t next = 0; next < pairs.size(); ++next) {
    const auto [into, from] = pairs[next];
    watch_.tick();
    ++work_;
    save(into);
    gain += merge_rows(rows_[index(into)], rows_[index(from)]);
    for (const auto& [read, below] : children_[index(from)]) {
      Id& target = child(into, read);
      if (target == none)
        target = below;
      else
        pairs.emplace_back(target, below);
    }
  }
  if (undo)
    for (Saved& each : saved_) {
      rows_[index(each.node)] = std::move(each.row);
      children_[index(each.node)] = std::move(each.children);
    }
  return gain;
}

std::optional<Transitions> TreeMerging::run(Id most_states, std::int64_t most_work) {
  std::vector<Id> red{0};
  std::vector<Id> number(rows_.size(), none);
  number[0] = 0;
  struct Choice {
    Id red = none;
    Id parent = none;
    Id label = none;
    double gain = -std::numeric_limits<double>::infinity();
  };
  while (true) {
    Choice merge;                                        // with the highest gain
    Choice new_state{none, none, none, -contradiction};  // the blue node whose best merge is worst
    for (const Id parent : red) {
      const Children below = children_[index(parent)];
      for (const auto& [label, blue] : below) {
        if (number[index(blue)] != none) continue;
        Choice best;
        for (const Id into : red) {
          if (work_ > most_work) return std::nullopt;
          const double gain = fold(into, parent, label, true);
          if (gain > best.gain) best = {into, parent, label, gain};
        }
        if (best.gain > merge.gain) merge = best;
        if (best.gain < new_state.gain) new_state = best;
      }
    }
    if (merge.parent == none) break;
    if (new_state.parent != none) {
      if (static_cast<Id>(red.size()) == most_states) return std::nullopt;
      const Id state = child(new_state.parent, new_state.label);
      number[index(state)] = static_cast<Id>(red.size());
      red.push_back(state);
    } else {
      fold(merge.red, merge.parent, merge.label, false);
    }
  }
  Transitions transitions(red.size() * index(tree_.labels));
  for (std::size_t state = 0; state < red.size(); ++state) {
    for (Id label = 0; label < tree_.labels; ++label)
      transitions[state * index(tree_.labels) + index(label)] = static_cast<Id>(state);
    for (const auto& [label, to] : children_[index(red[state])])
      transitions[state * index(tree_.labels) + index(label)] = number[index(to)];
  }
  return transitions;
}

}  // namespace resolvent
