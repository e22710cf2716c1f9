// The softmax of training: each row has the logits of the same candidates, and a target of its own.
#pragma once

#include <cmath>

#include "lanes.h"

namespace elmore {

// What the loss and its gradients need of one row.
struct RowOfSoftmax {
  float loss;    // -log p of the target
  float own;     // p - 1 of the target: the gradient of its logit
  float share;   // one over the sum of all exponents
};

// The largest lane; NaN is ignored.
inline float largest_lane(Floats lanes) {
  float most = lanes[0];
  for (int lane = 1; lane < kLanes; ++lane) most = lanes[lane] > most ? lanes[lane] : most;
  return most;
}

inline float sum_of_lanes(Floats lanes) {
  for (int half = kLanes / 2; half; half /= 2)
    for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  return lanes[0];
}

// Replaces logits by exp(logit - largest), which is 0 for the target if it is a candidate: it
// counts once, with `target`, its own logit. Sums are in a fixed order.
inline RowOfSoftmax take_exponents(float* logits, int64_t number, int64_t column_of_target,
                                   float target) {
  if (column_of_target >= 0) logits[column_of_target] = -INFINITY;
  const int64_t whole = number / kLanes * kLanes, rest = number - whole;
  Floats last = fill(-INFINITY);
  std::memcpy(&last, logits + whole, rest * sizeof(float));
  Floats most = last > fill(target) ? last : fill(target);
  for (int64_t i = 0; i < whole; i += kLanes) {
    const Floats here = load(logits + i);
    most = here > most ? here : most;
  }
  const float peak = largest_lane(most);
  Floats sums = fill(0.0f);
  for (int64_t i = 0; i < whole; i += kLanes) {
    const Floats powers = exp(load(logits + i) - peak);
    store(logits + i, powers);
    sums += powers;
  }
  last = exp(last - peak);
  std::memcpy(logits + whole, &last, rest * sizeof(float));
  const float others = sum_of_lanes(sums + last);
  const float total = others + std::exp(target - peak);
  return {std::log(total) + (peak - target), -others / total, 1.0f / total};
}

}  // namespace elmore
