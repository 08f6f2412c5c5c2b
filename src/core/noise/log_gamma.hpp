// ln Γ, from any number of threads: the library's own also writes to a global, its sign.
#pragma once

#include <cmath>

namespace resolvent {

inline double log_gamma(double x) {
#if defined(__unix__) || defined(__APPLE__)
  int sign = 0;
  return ::lgamma_r(x, &sign);
#else
  return std::lgamma(x);
#endif
}

}  // namespace resolvent
