#include "tree_merging.hpp"

#include <algorithm>
#include <limits>

namespace resolvent {
namespace {

constexpr double contradiction = 6.0;  // a merge that costs more makes a state instead

}  // namespace

TreeMerging::TreeMerging(const NoisyTree& tree, const NoiseShape& noise, Pulse& pulse)
    : tree_(tree), score_(tree.cells, noise), pulse_(pulse), rows_(tree.histories.parent.size()),
      children_(tree.histories.parent.size()), kept_at_(tree.histories.parent.size()) {
  for (std::size_t node = 0; node < rows_.size(); ++node) {
    for (std::size_t at = tree.first_answer[node]; at < tree.first_answer[node + 1]; ++at) {
      if (rows_[node].empty() || rows_[node].back().cell != tree.answer[at]) rows_[node].push_back({tree.answer[at], 0});
      ++rows_[node].back().times;
    }
    for (Id below = tree.histories.first_child[node]; below < tree.histories.first_child[node + 1]; ++below)
      children_[node].emplace_back(tree.histories.label[index(below)], below);
    std::sort(children_[node].begin(), children_[node].end());
  }
}

// What the answers to one query are worth.
double TreeMerging::worth(const Count* first, const Count* last) const {
  const auto query = index(tree_.cells.query[index(first->cell)]);
  double total = 0.0;
  double main = -std::numeric_limits<double>::infinity();
  Id asked = 0;
  for (const Count* each = first; each != last; ++each) {
    total += score_.others(index(each->cell), each->times);
    asked += each->times;
    main = std::max(main, score_.main(index(each->cell), each->times));
  }
  for (auto cell = index(tree_.cells.first[query]); cell < index(tree_.cells.first[query + 1]); ++cell)
    main = std::max(main, score_.main(cell, 0));
  return total + main - score_.anys(asked);
}

double TreeMerging::pour(Row& into, const Row& from) const {
  if (from.empty()) return 0.0;
  const auto query = [&](const Count& count) { return tree_.cells.query[index(count.cell)]; };
  Row both;
  both.reserve(into.size() + from.size());
  double gained = 0.0;
  auto at = into.begin();
  for (auto given = from.begin(); given != from.end();) {
    const Id asked = query(*given);
    while (at != into.end() && query(*at) < asked) both.push_back(*at++);
    const auto before = at;
    while (at != into.end() && query(*at) == asked) ++at;
    const auto begin = given;
    while (given != from.end() && query(*given) == asked) ++given;
    if (before == at) {
      both.insert(both.end(), begin, given);
      continue;
    }
    const std::size_t start = both.size();
    std::merge(before, at, begin, given, std::back_inserter(both),
               [](const Count& one, const Count& other) { return one.cell < other.cell; });
    std::size_t kept = start;
    for (std::size_t next = start + 1; next < both.size(); ++next) {
      if (both[next].cell == both[kept].cell)
        both[kept].times += both[next].times;
      else
        both[++kept] = both[next];
    }
    both.resize(kept + 1);
    gained += worth(&both[start], &both[0] + both.size()) - worth(&*before, &*before + (at - before)) -
              worth(&*begin, &*begin + (given - begin));
  }
  both.insert(both.end(), at, into.end());
  into = std::move(both);
  return gained;
}

Id& TreeMerging::child(Id node, Id label) {
  auto& children = children_[index(node)];
  const auto place = std::lower_bound(children.begin(), children.end(), std::pair<Id, Id>{label, none});
  if (place != children.end() && place->first == label) return place->second;
  return children.insert(place, {label, none})->second;
}

void TreeMerging::keep(Id node) {
  if (kept_at_[index(node)] == folds_) return;
  kept_at_[index(node)] = folds_;
  kept_.push_back({node, rows_[index(node)], children_[index(node)]});
}

double TreeMerging::fold(Id red, Id parent, Id label, bool undo) {
  ++folds_;
  kept_.clear();
  keep(parent);
  const Id blue = child(parent, label);
  child(parent, label) = red;
  double gained = 0.0;
  std::vector<std::pair<Id, Id>> pairs{{red, blue}};
  // Below a blue node everything is still a tree, so each node of it is met once.
  for (std::size_t next = 0; next < pairs.size(); ++next) {
    const auto [into, from] = pairs[next];
    pulse_.beat();
    ++work_;
    keep(into);
    gained += pour(rows_[index(into)], rows_[index(from)]);
    for (const auto& [read, below] : children_[index(from)]) {
      Id& target = child(into, read);
      if (target == none)
        target = below;
      else
        pairs.emplace_back(target, below);
    }
  }
  if (undo)
    for (Kept& each : kept_) {
      rows_[index(each.node)] = std::move(each.row);
      children_[index(each.node)] = std::move(each.children);
    }
  return gained;
}

std::optional<Moves> TreeMerging::run(Id most_states, std::int64_t most_work) {
  std::vector<Id> red{0};
  std::vector<Id> number(rows_.size(), none);
  number[0] = 0;
  struct Choice {
    Id red = none;
    Id parent = none;
    Id label = none;
    double gained = -std::numeric_limits<double>::infinity();
  };
  while (true) {
    Choice merge;                                                  // the one that gains most
    Choice fresh{none, none, none, -contradiction};  // the blue node that fits worst where it fits best
    for (const Id parent : red) {
      const Children below = children_[index(parent)];
      for (const auto& [label, blue] : below) {
        if (number[index(blue)] != none) continue;
        Choice best;
        for (const Id into : red) {
          if (work_ > most_work) return std::nullopt;
          const double gained = fold(into, parent, label, true);
          if (gained > best.gained) best = {into, parent, label, gained};
        }
        if (best.gained > merge.gained) merge = best;
        if (best.gained < fresh.gained) fresh = best;
      }
    }
    if (merge.parent == none) break;
    if (fresh.parent != none) {
      if (static_cast<Id>(red.size()) == most_states) return std::nullopt;
      const Id state = child(fresh.parent, fresh.label);
      number[index(state)] = static_cast<Id>(red.size());
      red.push_back(state);
    } else {
      fold(merge.red, merge.parent, merge.label, false);
    }
  }
  Moves moves(red.size() * index(tree_.labels));
  for (std::size_t state = 0; state < red.size(); ++state) {
    for (Id label = 0; label < tree_.labels; ++label)
      moves[state * index(tree_.labels) + index(label)] = static_cast<Id>(state);
    for (const auto& [label, to] : children_[index(red[state])])
      moves[state * index(tree_.labels) + index(label)] = number[index(to)];
  }
  return moves;
}

}  // namespace resolvent
