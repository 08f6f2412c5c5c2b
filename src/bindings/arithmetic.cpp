// The core's own logarithms and their kin, for tests that hold them to known values.

#include <nanobind/nanobind.h>

#include "elementary.hpp"

namespace nb = nanobind;

void bind_arithmetic(nb::module_& module) {
  module.def("natural_log", &resolvent::natural_log, nb::arg("x"));
  module.def("log_one_plus", &resolvent::log_one_plus, nb::arg("x"));
  module.def("binary_log", &resolvent::binary_log, nb::arg("x"));
  module.def("exponential", &resolvent::exponential, nb::arg("x"));
  module.def("power", &resolvent::power, nb::arg("base"), nb::arg("exponent"));
  module.def("log_gamma", &resolvent::log_gamma, nb::arg("x"));
}
