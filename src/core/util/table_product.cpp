#include "table_product.hpp"

namespace resolvent {

std::vector<double> product(std::span<const double> left, std::span<const double> right, std::size_t inner) {
  const std::size_t rows = left.size() / inner;
  const std::size_t columns = right.size() / inner;
  std::vector<double> values(rows * columns);
  for (std::size_t row = 0; row < rows; ++row) {
    double* const sums = values.data() + row * columns;
    for (std::size_t at = 0; at < inner; ++at) {
      const double factor = left[row * inner + at];
      const double* const summands = right.data() + at * columns;
      for (std::size_t column = 0; column < columns; ++column) sums[column] += factor * summands[column];
    }
  }
  return values;
}

}  // namespace resolvent
