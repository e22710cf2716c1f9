// The backward pass of the LSTM in lstm.h, from the gradient of its outputs to that of its gates.
//
// The gradients of weights and inputs are sums over all steps; the caller computes them as large
// matrix products.
#pragma once

#include "lstm.h"

namespace elmore {

struct BackwardLayer {
  Matrix projection;  // (C, P): maps the gradient of the projection to that of the shown cells
  Matrix state;       // (P, 4C): maps the gradient of the gates to that of the previous output
  float cell_clip;
  float output_clip;
  int64_t num_cells;
  int64_t num_outputs;

  bool has_projection() const { return projection.num_panels > 0; }
};

struct Gradients {
  const float* outputs;      // (N, P)
  const float* last_hidden;  // (B, P)
  const float* last_cell;    // (B, C)
  float* gates;              // (N, 4C), before the nonlinearity
  float* narrow;             // (N, P) of the projection before its clip, or of the output
  float* first_hidden;       // (B, P)
  float* first_cell;         // (B, C)
};

// One vector of cells of one row. `cell_gradient` comes from the next step and is replaced with the
// one for the previous step. Gates and their gradients are `num_cells` apart.
inline void step_back(const float* gates, Floats cell, Floats cell_before, Floats shown_gradient,
                      Floats cell_clip, int64_t num_cells, Floats* cell_gradient,
                      float* gate_gradients) {
  const Floats write = load(gates), keep = load(gates + num_cells);
  const Floats candidate = load(gates + 2 * num_cells), show = load(gates + 3 * num_cells);
  const Floats squashed = tanh(cell);
  Floats gradient = fused(shown_gradient * show, 1.0f - squashed * squashed, *cell_gradient);
  // A clipped cell has no gradient. Its sum before the clip is recomputed.
  const Floats sum = fused(write, candidate, keep * cell_before);
  gradient = absolute(sum) > cell_clip ? fill(0.0f) : gradient;
  *cell_gradient = gradient * keep;
  store(gate_gradients, gradient * candidate * (write * (1.0f - write)));
  store(gate_gradients + num_cells, gradient * cell_before * (keep * (1.0f - keep)));
  store(gate_gradients + 2 * num_cells, gradient * write * (1.0f - candidate * candidate));
  store(gate_gradients + 3 * num_cells, shown_gradient * squashed * (show * (1.0f - show)));
}

// The same for fewer cells than a vector has lanes.
inline void step_back_some(int64_t some, const float* gates, const float* cell,
                           const float* cell_before, Floats shown_gradient, Floats cell_clip,
                           int64_t num_cells, Floats* cell_gradient, float* gate_gradients) {
  float padded_gates[4 * kLanes] = {}, padded_gradients[4 * kLanes];
  float padded_cell[kLanes] = {}, padded_before[kLanes] = {};
  const size_t bytes = some * sizeof(float);
  for (int gate = 0; gate < 4; ++gate)
    std::memcpy(padded_gates + gate * kLanes, gates + gate * num_cells, bytes);
  std::memcpy(padded_cell, cell, bytes);
  std::memcpy(padded_before, cell_before, bytes);
  step_back(padded_gates, load(padded_cell), load(padded_before), shown_gradient, cell_clip, kLanes,
            cell_gradient, padded_gradients);
  for (int gate = 0; gate < 4; ++gate)
    std::memcpy(gate_gradients + gate * num_cells, padded_gradients + gate * kLanes, bytes);
}

template <class P>
void run_backward(const BackwardLayer& layer, const Steps& steps, const Saved& saved,
                         const float* first_cell, const Gradients& gradients) {
  const int64_t num_sentences = steps.num_sentences();
  const int64_t num_cells = layer.num_cells, num_outputs = layer.num_outputs;
  const State hidden_gradient(num_sentences, num_outputs);  // of the output, from later steps
  const State cell_gradient(num_sentences, num_cells);
  const State shown_gradient(num_sentences, num_cells);
  hidden_gradient.read(gradients.last_hidden, num_sentences);
  cell_gradient.read(gradients.last_cell, num_sentences);
  PreparedRows<P> narrow(num_sentences, num_outputs);
  PreparedRows<P> gates(num_sentences, 4 * num_cells);
  const Floats cell_clip = fill(layer.cell_clip);

  int64_t first_row = 0;
  for (int64_t step = 0; step < steps.number; ++step) first_row += steps.sizes[step];
  for (int64_t step = steps.number - 1; step >= 0; --step) {
    const int64_t num_rows = steps.sizes[step];
    first_row -= num_rows;

    for (int64_t row = 0; row < num_rows; ++row) {
      const int64_t n = first_row + row;
      float* to = gradients.narrow + n * num_outputs;
      for (int64_t i = 0; i < num_outputs; ++i) {
        const bool is_clipped =
            layer.has_projection() &&
            std::fabs(saved.narrow[n * num_outputs + i]) > layer.output_clip;
        to[i] = is_clipped ? 0.0f
                           : hidden_gradient.row(row)[i] + gradients.outputs[n * num_outputs + i];
      }
      if (layer.has_projection())
        narrow.set(row, to);
      else
        std::memcpy(shown_gradient.row(row), to, num_outputs * sizeof(float));
    }
    if (layer.has_projection())
      multiply(narrow.from(0), num_rows, layer.projection, 0, layer.projection.num_panels,
               {shown_gradient.row(0), shown_gradient.stride()});

    for (int64_t row = 0; row < num_rows; ++row) {
      const int64_t n = first_row + row;
      // The rows of a step are the first rows of the step before.
      const float* before =
          step == 0 ? first_cell + row * num_cells
                    : saved.cells + (first_row - steps.sizes[step - 1] + row) * num_cells;
      for (int64_t cell = 0; cell < num_cells; cell += kLanes) {
        const float* gates_here = saved.gates + n * 4 * num_cells + cell;
        const float* cells_here = saved.cells + n * num_cells + cell;
        float* to = gradients.gates + n * 4 * num_cells + cell;
        const Floats shown = load(shown_gradient.row(row) + cell);
        Floats carried = load(cell_gradient.row(row) + cell);
        if (cell + kLanes <= num_cells)
          step_back(gates_here, load(cells_here), load(before + cell), shown, cell_clip, num_cells,
                    &carried, to);
        else
          step_back_some(num_cells - cell, gates_here, cells_here, before + cell, shown, cell_clip,
                         num_cells, &carried, to);
        store(cell_gradient.row(row) + cell, carried);
      }
      gates.set(row, gradients.gates + n * 4 * num_cells);
    }
    multiply(gates.from(0), num_rows, layer.state, 0, layer.state.num_panels,
             {hidden_gradient.row(0), hidden_gradient.stride()});
  }
  hidden_gradient.write(gradients.first_hidden, num_sentences);
  cell_gradient.write(gradients.first_cell, num_sentences);
}

}  // namespace elmore
