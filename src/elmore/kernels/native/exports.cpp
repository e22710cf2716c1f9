// The plain C interface; kernels/library.py declares the same functions and structures.
//
// Functions return 0, or 1 if memory ran out. They keep no state between calls, so any number of
// threads may call them in parallel.

#include <new>
#include <type_traits>

#include "lstm.h"
#include "lstm_backward.h"
#include "softmax.h"
#include "tokens.h"

using namespace elmore;

enum Precision : int32_t { kF32 = 0, kBF16 = 1, kINT8 = 2, kF16 = 3 };

extern "C" {

struct ElmoreMatrix {
  const char* panels;
  const float* scales;
  int64_t num_inputs;
  int64_t num_panels;
};

struct ElmoreLayer {
  ElmoreMatrix input, state, projection;
  const float* bias;
  float cell_clip, output_clip;
  int64_t num_cells, num_outputs;
  int32_t precision;
};

struct ElmoreBackwardLayer {
  ElmoreMatrix projection, state;
  float cell_clip, output_clip;
  int64_t num_cells, num_outputs;
  int32_t precision;
};

struct ElmoreSaved {
  float *gates, *cells, *shown, *narrow;
};

struct ElmoreGradients {
  const float *outputs, *last_hidden, *last_cell;
  float *gates, *narrow, *first_hidden, *first_cell;
};

}  // extern "C"

namespace {

Matrix to_matrix(const ElmoreMatrix& m) {
  return {m.panels, m.scales, m.num_inputs, m.num_panels};
}

Layer to_layer(const ElmoreLayer& from) {
  return {to_matrix(from.input), to_matrix(from.state), to_matrix(from.projection),
          from.bias,             from.cell_clip,        from.output_clip,
          from.num_cells,        from.num_outputs};
}

// Calls `work` with the type of a precision; catches all exceptions.
template <class Work>
int32_t with_precision(int32_t precision, Work work) {
  try {
    switch (precision) {
      case kBF16:
        work(BF16{});
        break;
      case kINT8:
        work(INT8{});
        break;
      case kF16:
        work(F16{});
        break;
      default:
        work(F32{});
    }
    return 0;
  } catch (const std::exception&) {
    return 1;
  }
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

// Increase it with every change of a function or structure here, and in library.py.
int32_t elmore_interface() { return 4; }

// Outputs per panel.
int64_t elmore_panel() { return kPanel; }

int64_t elmore_packed_bytes(int32_t precision, int64_t num_inputs, int64_t num_panels) {
  int64_t bytes = 0;
  with_precision(precision, [&](auto p) { bytes = decltype(p)::panel_bytes(num_inputs); });
  return bytes * num_panels;
}

int32_t elmore_pack(int32_t precision, const float* weights, int64_t output_stride,
                    int64_t input_stride, int64_t num_inputs, const int32_t* sources,
                    int64_t num_panels, char* panels, float* scales) {
  return with_precision(precision, [&](auto p) {
    pack<decltype(p)>(weights, output_stride, input_stride, num_inputs, sources, num_panels,
                      panels, scales);
  });
}

// Runs all layers of one direction. `positions` are the packed rows' indices in the flat arrays:
// `tokens`, and `outputs` with one array per layer.
int32_t elmore_read(const ElmoreLayer* layers, int64_t num_layers, int32_t has_residuals,
                    const int32_t* step_sizes, int64_t num_steps, const int64_t* positions,
                    const float* tokens, int64_t token_stride, const float* first_hidden,
                    const float* first_cell, float* last_hidden, float* last_cell, float* outputs,
                    int64_t layer_stride, int64_t row_stride, int32_t team_size) {
  const Steps steps = {step_sizes, num_steps};
  const float* below = tokens;
  int64_t below_stride = token_stride;
  for (int64_t depth = 0; depth < num_layers; ++depth) {
    const int32_t status = with_precision(layers[depth].precision, [&](auto p) {
      const Layer layer = to_layer(layers[depth]);
      float* above = outputs + depth * layer_stride;
      const auto input_row = [&](int64_t n) { return below + positions[n] * below_stride; };
      const auto emit = [&](int64_t n, const float* hidden) {
        float* to = above + positions[n] * row_stride;
        const float* from = input_row(n);
        const bool adds = has_residuals && depth > 0;
        for (int64_t i = 0; i < layer.num_outputs; ++i)
          to[i] = adds ? hidden[i] + from[i] : hidden[i];
      };
      const int64_t hidden_size = steps.num_sentences() * layer.num_outputs * depth;
      const int64_t cell_size = steps.num_sentences() * layer.num_cells * depth;
      LayerRun<decltype(p)>(layer, steps, team_size)
          .run(first_hidden + hidden_size, first_cell + cell_size, last_hidden + hidden_size,
               last_cell + cell_size, {}, depth == 0, input_row, emit);
      below = above;
      below_stride = row_stride;
    });
    if (status) return status;
  }
  return 0;
}

// Runs one layer over packed (N, D) inputs, and saves what the backward pass needs.
int32_t elmore_train(const ElmoreLayer* layer, const int32_t* step_sizes, int64_t num_steps,
                     const float* inputs, const float* first_hidden, const float* first_cell,
                     float* last_hidden, float* last_cell, float* outputs,
                     const ElmoreSaved* saved) {
  return with_precision(layer->precision, [&](auto p) {
    const int64_t num_inputs = layer->input.num_inputs, num_outputs = layer->num_outputs;
    LayerRun<decltype(p)>(to_layer(*layer), {step_sizes, num_steps}, 1)
        .run(
            first_hidden, first_cell, last_hidden, last_cell,
            {saved->gates, saved->cells, saved->shown, saved->narrow}, false,
            [&](int64_t n) { return inputs + n * num_inputs; },
            [&](int64_t n, const float* hidden) {
              std::memcpy(outputs + n * num_outputs, hidden, num_outputs * sizeof(float));
            });
  });
}

int32_t elmore_train_back(const ElmoreBackwardLayer* layer, const int32_t* step_sizes,
                          int64_t num_steps, const ElmoreSaved* saved, const float* first_cell,
                          const ElmoreGradients* gradients) {
  return with_precision(layer->precision, [&](auto p) {
    const ElmoreGradients& g = *gradients;
    run_backward<decltype(p)>(
        {to_matrix(layer->projection), to_matrix(layer->state), layer->cell_clip,
         layer->output_clip, layer->num_cells, layer->num_outputs},
        {step_sizes, num_steps}, {saved->gates, saved->cells, saved->shown, saved->narrow},
        first_cell,
        {g.outputs, g.last_hidden, g.last_cell, g.gates, g.narrow, g.first_hidden, g.first_cell});
  });
}

// Replaces (rows, C) logits by exponents. `columns` are those of the rows' targets, or -1.
int32_t elmore_take_exponents(float* logits, int64_t num_rows, int64_t num_candidates,
                              const int64_t* columns, const float* targets, float* losses,
                              float* own, float* shares) {
  for (int64_t row = 0; row < num_rows; ++row) {
    const RowOfSoftmax found = take_exponents(logits + row * num_candidates, num_candidates,
                                              columns[row], targets[row]);
    losses[row] = found.loss;
    own[row] = found.own;
    shares[row] = found.share;
  }
  return 0;
}

// A linear layer: (rows, I) to some panels of (rows, O).
int32_t elmore_linear(int32_t precision, const ElmoreMatrix* matrix, const float* bias,
                      const float* inputs, int64_t num_rows, float* outputs, int64_t num_outputs,
                      int64_t first_panel, int64_t last_panel) {
  return with_precision(precision, [&](auto p) {
    linear<decltype(p)>(to_matrix(*matrix), bias, inputs, num_rows, outputs, num_outputs,
                        first_panel, last_panel);
  });
}

// A highway layer: (rows, F) to some pairs of panels of (rows, F).
int32_t elmore_highway(int32_t precision, const ElmoreMatrix* matrix, const float* bias,
                       const float* inputs, int64_t num_rows, float* outputs, int64_t first_panel,
                       int64_t last_panel) {
  return with_precision(precision, [&](auto p) {
    highway<decltype(p)>(to_matrix(*matrix), bias, inputs, num_rows, outputs, first_panel,
                         last_panel);
  });
}

// The maximum responses of filters of one width, by table.
int32_t elmore_strongest(const int32_t* units, const int32_t* positions, int64_t num_tokens,
                         int64_t max_chars, const float* table, int64_t width, int64_t num_units,
                         int64_t num_filters, float* strongest, int64_t stride, int32_t* winners) {
  strongest_responses({units, positions, num_tokens, max_chars},
                      {table, width, num_units, num_filters}, strongest, stride, winners);
  return 0;
}

// Adds the gradient of the responses to that of the table.
int32_t elmore_scatter(const int32_t* units, int64_t num_tokens, int64_t max_chars,
                       const int32_t* winners, const float* gradient, int64_t gradient_stride,
                       int64_t width, int64_t num_units, int64_t num_filters,
                       float* table_gradient) {
  scatter_responses({units, nullptr, num_tokens, max_chars}, winners, gradient, gradient_stride,
                    width, num_units, num_filters, table_gradient);
  return 0;
}

}  // extern "C"
#pragma GCC visibility pop
