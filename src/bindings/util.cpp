// Reproducible arithmetic for Python, for single numbers and for arrays.

#include "arithmetic.hpp"
#include "arrays.hpp"

namespace {

template <double (*function)(double)>
nb::ndarray<nb::numpy, double, nb::ndim<1>> each(const Reals& x) {
  std::vector<double> values(x.size());
  {
    nb::gil_scoped_release no_gil;
    std::ranges::transform(span_of(x), values.begin(), function);
  }
  return array(std::move(values));
}

nb::ndarray<nb::numpy, double, nb::ndim<1>> product(const Reals& left, const Reals& right, std::size_t inner) {
  require(inner > 0 && left.size() % inner == 0 && right.size() % inner == 0, "the tables do not fit");
  std::vector<double> values;
  {
    nb::gil_scoped_release no_gil;
    values = resolvent::product(span_of(left), span_of(right), inner);
  }
  return array(std::move(values));
}

}  // namespace

void bind_util(nb::module_& module) {
  module.def("natural_log", &resolvent::natural_log, "x"_a);
  module.def("log_one_plus", &resolvent::log_one_plus, "x"_a);
  module.def("binary_log", &resolvent::binary_log, "x"_a);
  module.def("exponential", &resolvent::exponential, "x"_a);
  module.def("power", &resolvent::power, "base"_a, "exponent"_a);
  module.def("log_gamma", &resolvent::log_gamma, "x"_a);
  module.def("natural_logs", &each<resolvent::natural_log>, "x"_a);
  module.def("logs_one_plus", &each<resolvent::log_one_plus>, "x"_a);
  module.def("binary_logs", &each<resolvent::binary_log>, "x"_a);
  module.def("exponentials", &each<resolvent::exponential>, "x"_a);
  module.def("log_gammas", &each<resolvent::log_gamma>, "x"_a);
  module.def("product", &product, "left"_a, "right"_a, "inner"_a);
}
