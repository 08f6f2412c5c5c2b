#include "rival_moves.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>

namespace resolvent {
namespace {

constexpr std::size_t tried_targets = 3;
constexpr std::size_t idle_rows = 20'000;  // to read anew for a move of an idle label, at most

class Rivalry {
 public:
  Rivalry(const AnswerCells& cells, const Labels& labels, const Moves& moves, Id states, const NoiseShape& noise)
      : cells_(cells), labels_(labels), moves_(moves), states_(index(states)), width_(moves.size() / index(states)),
        weigh_(cells, noise), read_(moves.size()), first_(moves.size()), after_(moves.size()),
        counts_(index(states) * cells.size()) {
    find_idle_labels();
    walk();
    counts_before_ = counts_;
    read_before_ = read_;
    row_.resize(states_ * cells.queries());
    touched_.resize(row_.size());
    for (std::size_t state = 0; state < states_; ++state)
      for (std::size_t asked = 0; asked < cells.queries(); ++asked)
        row_[state * cells.queries() + asked] = weigh_(asked, counts_of(state, asked));
    log_moves_ = log_moves_now(moves_.size(), none);
  }

  Rival rival(std::size_t move) {
    Rival best;
    if (read_before_[move] == 0 || (idle_[move % width_] != 0 && rows_after(move) > idle_rows)) return best;
    for (const Id target : promising(move)) {
      const double odds = -gained(move, target);
      if (best.target == none || odds < best.log_odds) best = {target, odds};
    }
    return best;
  }

 private:
  // How many rows are read anew if a move has another target.
  [[nodiscard]] std::size_t rows_after(std::size_t move) const {
    std::size_t rows = 0;
    for (const auto& [row, end] : first_[move]) rows += end - row;
    return rows;
  }

  // Labels are idle if all their moves stay, or are never read.
  void find_idle_labels() {
    idle_.assign(width_, 1);
    for (std::size_t move = 0; move < moves_.size(); ++move)
      if (moves_[move] != none && index(moves_[move]) != move / width_) idle_[move % width_] = 0;
  }

  // Reads all labels once: states, counts, where each move is read first in a trace, and the
  // answers between it and the next label that is not idle.
  void walk() {
    state_of_.assign(labels_.beta.size(), 0);
    std::vector<std::size_t> last_trace(moves_.size(), labels_.offsets.size());
    for (std::size_t trace = 0; trace + 1 < labels_.offsets.size(); ++trace) {
      std::size_t state = 0;
      std::size_t since = moves_.size();  // the last move by a label that is not idle
      std::size_t idled = moves_.size();  // the last move, if by a label that is idle
      const auto end = static_cast<std::size_t>(labels_.offsets[trace + 1]);
      for (auto row = static_cast<std::size_t>(labels_.offsets[trace]); row < end; ++row) {
        if (const Id label = labels_.beta[row]; label != none) {
          const std::size_t move = state * width_ + index(label);
          if (moves_[move] == none) throw std::invalid_argument("a label is read that the machine has no move for");
          ++read_[move];
          if (idle_[index(label)] == 0) since = move;
          idled = idle_[index(label)] == 0 ? moves_.size() : move;
          if (std::exchange(last_trace[move], trace) != trace) first_[move].emplace_back(row, end);
          state = index(moves_[move]);
        }
        state_of_[row] = static_cast<Id>(state);
        if (const Id cell = cells_.of_row[row]; cell != none) {
          ++counts_[state * cells_.size() + index(cell)];
          if (since < moves_.size()) after_[since].push_back(cell);
          if (idled < moves_.size()) after_[idled].push_back(cell);
        }
      }
    }
    for (auto& cells : after_) std::sort(cells.begin(), cells.end());
  }

  // The other targets that the answers right after the move speak for most, and staying: that is
  // likelier in advance than any of them.
  [[nodiscard]] std::vector<Id> promising(std::size_t move) const {
    std::vector<std::pair<double, Id>> worth;
    for (std::size_t target = 0; target < states_; ++target)
      if (index(moves_[move]) != target) worth.emplace_back(-gained_after(move, target), static_cast<Id>(target));
    std::sort(worth.begin(), worth.end());
    std::vector<Id> best;
    for (std::size_t at = 0; at < std::min(worth.size(), tried_targets); ++at) best.push_back(worth[at].second);
    const auto stays = static_cast<Id>(move / width_);
    if (moves_[move] != stays && std::find(best.begin(), best.end(), stays) == best.end()) best.push_back(stays);
    return best;
  }

  // What a state's rows gain or lose if it also gave the answers right after the move.
  [[nodiscard]] double gained_after(std::size_t move, std::size_t state) const {
    const auto& given = after_[move];
    double gained = 0.0;
    std::vector<Id> together;
    for (std::size_t at = 0; at < given.size();) {
      const auto asked = index(cells_.query[index(given[at])]);
      const Id first = cells_.first[asked];
      const Id* before = counts_of(state, asked);
      together.assign(before, before + cells_.answers(asked));
      for (; at < given.size() && given[at] < cells_.first[asked + 1]; ++at) ++together[index(given[at] - first)];
      gained += weigh_(asked, together.data()) - row_[state * cells_.queries() + asked];
    }
    return gained;
  }

  // What all answers and moves gain if the move had another target.
  double gained(std::size_t move, Id target) {
    for (const auto& [row, end] : first_[move]) read_anew(move, target, row, end);
    double gain = log_moves_now(move, target) - log_moves_;
    std::sort(changed_.begin(), changed_.end());
    for (const std::size_t at : changed_) {
      const std::size_t state = at / cells_.queries();
      const std::size_t asked = at % cells_.queries();
      gain += weigh_(asked, counts_of(state, asked)) - row_[at];
      touched_[at] = 0;
      const std::size_t from = state * cells_.size() + index(cells_.first[asked]);
      std::copy_n(&counts_before_[from], cells_.answers(asked), &counts_[from]);
    }
    changed_.clear();
    read_ = read_before_;
    return gain;
  }

  void read_anew(std::size_t changed, Id target, std::size_t from, std::size_t end) {
    std::size_t state = index(target);
    for (std::size_t row = from; row < end; ++row) {
      if (const Id label = labels_.beta[row]; row > from && label != none) {
        const std::size_t move = state * width_ + index(label);
        const std::size_t before = index(state_of_[row - 1]) * width_ + index(label);
        ++read_[move];
        --read_[before];
        if (move == changed)
          state = index(target);
        else if (moves_[move] != none)
          state = index(moves_[move]);
      }
      const auto before = index(state_of_[row]);
      const Id cell = cells_.of_row[row];
      if (cell == none || before == state) continue;
      --counts_[before * cells_.size() + index(cell)];
      ++counts_[state * cells_.size() + index(cell)];
      touch(before, index(cells_.query[index(cell)]));
      touch(state, index(cells_.query[index(cell)]));
    }
  }

  void touch(std::size_t state, std::size_t asked) {
    const std::size_t at = state * cells_.queries() + asked;
    if (std::exchange(touched_[at], 1) == 0) changed_.push_back(at);
  }

  // ln of how likely the moves are in advance, as they are read now, one of them with another target.
  [[nodiscard]] double log_moves_now(std::size_t changed, Id target) const {
    std::vector<std::uint8_t> reached(states_);
    reached[0] = 1;
    std::int64_t read = 0;
    std::int64_t staying = 0;
    for (std::size_t move = 0; move < moves_.size(); ++move) {
      if (read_[move] == 0) continue;
      const Id to = move == changed ? target : moves_[move];
      const std::size_t leads = to == none ? move / width_ : index(to);
      ++read;
      staying += leads == move / width_;
      reached[leads] = 1;
    }
    return log_moves(std::count(reached.begin(), reached.end(), 1), read, staying);
  }

  [[nodiscard]] const Id* counts_of(std::size_t state, std::size_t asked) const {
    return counts_.data() + state * cells_.size() + index(cells_.first[asked]);
  }

  const AnswerCells& cells_;
  const Labels& labels_;
  const Moves& moves_;
  std::size_t states_;
  std::size_t width_;
  RowWeights weigh_;
  std::vector<std::uint8_t> idle_;  // by label
  std::vector<Id> state_of_;        // by row
  std::vector<std::int64_t> read_;  // by move: how often
  std::vector<std::int64_t> read_before_;
  std::vector<std::vector<std::pair<std::size_t, std::size_t>>> first_;  // by move: row, end of its trace
  std::vector<std::vector<Id>> after_;                                   // by move: cells, sorted
  std::vector<Id> counts_;                                               // state, cell
  std::vector<Id> counts_before_;
  std::vector<double> row_;  // state, query: how likely its answers are
  std::vector<std::uint8_t> touched_;
  std::vector<std::size_t> changed_;
  double log_moves_ = 0.0;
};

}  // namespace

std::vector<Rival> rival_moves(const AnswerCells& cells, const Labels& labels, const Moves& moves, Id states,
                               const NoiseShape& noise) {
  Rivalry rivalry(cells, labels, moves, states, noise);
  std::vector<Rival> rivals;
  rivals.reserve(moves.size());
  for (std::size_t move = 0; move < moves.size(); ++move) rivals.push_back(rivalry.rival(move));
  return rivals;
}

}  // namespace resolvent
