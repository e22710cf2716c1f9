// The token encoder: character filters by table, highway layers, projection.
#pragma once

#include <limits>

#include "matrix.h"

namespace elmore {

constexpr int64_t kTokensAtOnce = 96;  // rows that stay in the cache while weights stream through

// The characters of some tokens, as indices into a table.
struct Spelling {
  const int32_t* units;      // (tokens, max_chars)
  const int32_t* positions;  // per token: relevant windows, counted for width 1
  int64_t num_tokens;
  int64_t max_chars;

  // The number of windows of this width that are relevant and fit.
  int64_t num_windows(int64_t token, int64_t width) const {
    return std::min<int64_t>(positions[token], max_chars - width + 1);
  }
};

// table[k][u] is what unit u adds to the responses as the k-th character of a window.
struct Table {
  const float* rows;  // (width, units, filters)
  int64_t width;
  int64_t num_units;
  int64_t num_filters;

  const float* row(int64_t offset, int32_t unit) const {
    return rows + (offset * num_units + unit) * num_filters;
  }
};

// The maximum response of each filter over the windows of a token; `winners`, if not null, gets the
// first window with the maximum. NaN counts as the maximum. Computes kVectors vectors of adjacent
// filters.
template <int kVectors>
void find_strongest(const Table& table, const int32_t* units, int64_t num_windows, int64_t filter,
                    float* strongest, int32_t* winners) {
  Floats best[kVectors];
  Ints window_of_best[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    best[v] = fill(-std::numeric_limits<float>::infinity());
    window_of_best[v] = fill(0);
  }
  for (int64_t window = 0; window < num_windows; ++window) {
    Floats sums[kVectors];
    const float* first = table.row(0, units[window]) + filter;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums[v] = load(first + v * kLanes);
    for (int64_t offset = 1; offset < table.width; ++offset) {
      const float* row = table.row(offset, units[window + offset]) + filter;
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[v] += load(row + v * kLanes);
    }
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const Ints is_better = (sums[v] > best[v]) | (sums[v] != sums[v]);
      best[v] = is_better ? sums[v] : best[v];
      window_of_best[v] = is_better ? fill((int32_t)window) : window_of_best[v];
    }
  }
  for (int v = 0; v < kVectors; ++v) {
    store(strongest + v * kLanes, best[v]);
    if (winners) std::memcpy(winners + v * kLanes, &window_of_best[v], sizeof(Ints));
  }
}

// One filter at a time, for those that do not fill a vector; same sums in the same order.
inline void find_strongest_alone(const Table& table, const int32_t* units, int64_t num_windows,
                                 int64_t filter, float* strongest, int32_t* winner) {
  float best = -std::numeric_limits<float>::infinity();
  int32_t window_of_best = 0;
  for (int64_t window = 0; window < num_windows; ++window) {
    float sum = table.row(0, units[window])[filter];
    for (int64_t offset = 1; offset < table.width; ++offset)
      sum += table.row(offset, units[window + offset])[filter];
    if (sum > best || std::isnan(sum)) {
      best = sum;
      window_of_best = (int32_t)window;
    }
  }
  *strongest = best;
  if (winner) *winner = window_of_best;
}

// Writes (tokens, filters), rows `stride` apart. A few filters are computed for all tokens before
// the next few, so that their part of the table (for common characters) stays in the cache.
inline void strongest_responses(const Spelling& spelling, const Table& table, float* strongest,
                                int64_t stride, int32_t* winners) {
  constexpr int64_t kMany = 4 * kLanes;
  for (int64_t filter = 0; filter < table.num_filters;) {
    const int64_t left = table.num_filters - filter;
    const int64_t done = left >= kMany ? kMany : left >= kLanes ? kLanes : 1;
    for (int64_t token = 0; token < spelling.num_tokens; ++token) {
      const int32_t* units = spelling.units + token * spelling.max_chars;
      const int64_t num_windows = spelling.num_windows(token, table.width);
      float* to = strongest + token * stride + filter;
      int32_t* won = winners ? winners + token * table.num_filters + filter : nullptr;
      if (done == kMany)
        find_strongest<4>(table, units, num_windows, filter, to, won);
      else if (done == kLanes)
        find_strongest<1>(table, units, num_windows, filter, to, won);
      else
        find_strongest_alone(table, units, num_windows, filter, to, won);
    }
    filter += done;
  }
}

// The gradient of the table: each response's gradient goes to the units of its window.
inline void scatter_responses(const Spelling& spelling, const int32_t* winners,
                              const float* gradient, int64_t gradient_stride, int64_t width,
                              int64_t num_units, int64_t num_filters, float* table_gradient) {
  for (int64_t token = 0; token < spelling.num_tokens; ++token) {
    const int32_t* units = spelling.units + token * spelling.max_chars;
    for (int64_t offset = 0; offset < width; ++offset)
      for (int64_t filter = 0; filter < num_filters; ++filter) {
        const int32_t window = winners[token * num_filters + filter];
        table_gradient[(offset * num_units + units[window + offset]) * num_filters + filter] +=
            gradient[token * gradient_stride + filter];
      }
  }
}

// gate * relu(transform) + (1 - gate) * x. Panels of the transform and of the gate alternate.
// Computes the outputs of some panels, so that threads can share the few rows of a short sentence.
template <class P>
void highway(const Matrix& matrix, const float* bias, const float* inputs, int64_t num_rows,
             float* outputs, int64_t first_panel, int64_t last_panel) {
  const int64_t dim = matrix.num_inputs;
  PreparedRows<P> prepared(std::min(kTokensAtOnce, num_rows), dim);
  const Buffer<float> tile(kTokensAtOnce * 2 * kPanel);
  for (int64_t first = 0; first < num_rows; first += kTokensAtOnce) {
    const int64_t some = std::min(kTokensAtOnce, num_rows - first);
    for (int64_t row = 0; row < some; ++row) prepared.set(row, inputs + (first + row) * dim);
    for (int64_t panel = first_panel; panel < last_panel; panel += 2) {
      multiply(prepared.from(0), some, matrix, panel, 2, {tile.get(), 2 * kPanel, kPanel});
      const int64_t column = panel / 2 * kPanel;
      const size_t bytes = std::min<int64_t>(kPanel, dim - column) * sizeof(float);
      for (int64_t row = 0; row < some; ++row) {
        float x[kPanel] = {};
        std::memcpy(x, inputs + (first + row) * dim + column, bytes);
        for (int lane = 0; lane < kPanel; lane += kLanes) {
          const float* sums = tile.get() + row * 2 * kPanel + lane;
          const Floats sum = load(sums) + load(bias + panel * kPanel + lane);
          const Floats transformed = sum < 0.0f ? fill(0.0f) : sum;
          const Floats gate = sigmoid(load(sums + kPanel) + load(bias + (panel + 1) * kPanel + lane));
          const Floats carried = (1.0f - gate) * load(x + lane);
          store(x + lane, fused(gate, transformed, carried));
        }
        std::memcpy(outputs + (first + row) * dim + column, x, bytes);
      }
    }
  }
}

// A linear layer; writes the columns of some panels to (rows, num_outputs).
template <class P>
void linear(const Matrix& matrix, const float* bias, const float* inputs, int64_t num_rows,
            float* outputs, int64_t num_outputs, int64_t first_panel, int64_t last_panel) {
  PreparedRows<P> prepared(std::min(kTokensAtOnce, num_rows), matrix.num_inputs);
  const int64_t width = (last_panel - first_panel) * kPanel;
  const int64_t column = first_panel * kPanel;
  const int64_t num_columns = std::min(width, num_outputs - column);
  const Buffer<float> sums(std::min(kTokensAtOnce, num_rows) * width);
  for (int64_t first = 0; first < num_rows; first += kTokensAtOnce) {
    const int64_t some = std::min(kTokensAtOnce, num_rows - first);
    for (int64_t row = 0; row < some; ++row)
      prepared.set(row, inputs + (first + row) * matrix.num_inputs);
    multiply(prepared.from(0), some, matrix, first_panel, last_panel - first_panel,
             {sums.get(), width});
    for (int64_t row = 0; row < some; ++row) {
      float* to = outputs + (first + row) * num_outputs + column;
      for (int64_t output = 0; output < num_columns; ++output)
        to[output] = sums[row * width + output] + bias[column + output];
    }
  }
}

}  // namespace elmore
