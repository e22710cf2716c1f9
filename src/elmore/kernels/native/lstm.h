// The projected LSTM with clipped cells and a clipped projection (Sak et al., 2014): one direction.
//
// Rows are packed: step after step, the longest sentence first, so that the rows of a step are the
// first of those of the step before. A sentence that has ended leaves its state where it stands.
//
// Gates stand in the order input, forget, candidate, output. In packed matrices the four gates of a
// panel of cells are neighbours, so that a tile holds all that an update of these cells needs.
#pragma once

#include "matrix.h"

namespace elmore {

// The numbers of input gates kept between steps: some megabytes, which the caches hold.
constexpr int64_t kInputGatesAtOnce = 2 << 20;
constexpr int64_t kRowsInTile = 48;

struct Layer {
  Matrix input;       // (4 gates of C cells, D)
  Matrix state;       // (4 gates of C cells, P)
  Matrix projection;  // (P, C); without panels if there is none
  const float* bias;  // 4 gates of C cells, in the order of the panels
  float cell_clip;    // infinite if there is none
  float output_clip;
  int64_t num_cells;
  int64_t num_outputs;

  bool has_projection() const { return projection.num_panels > 0; }
  int64_t cell_panels() const { return state.num_panels / 4; }
};

struct Steps {
  const int32_t* sizes;  // sentences still being read at each step
  int64_t number;

  int64_t num_sentences() const { return number ? sizes[0] : 0; }
};

// What a layer hands on of each row, besides its state. Pointers may be null.
struct Saved {
  float* gates = nullptr;   // (N, 4C) after their nonlinearity, in the usual order
  float* cells = nullptr;   // (N, C)
  float* shown = nullptr;   // (N, C) output gate times tanh(cell)
  float* narrow = nullptr;  // (N, P) its projection, before the clip
};

// The state of all sentences, padded to whole panels.
class State {
 public:
  State(int64_t num_sentences, int64_t width)
      : width_(width),
        stride_(round_up(width, kPanel) + kStagger),
        rows_(num_sentences * stride_) {
    std::fill_n(rows_.get(), num_sentences * stride_, 0.0f);
  }

  float* row(int64_t place) const { return rows_.get() + place * stride_; }
  int64_t stride() const { return stride_; }

  void read(const float* from, int64_t num_rows) const {
    for (int64_t place = 0; place < num_rows; ++place)
      std::memcpy(row(place), from + place * width_, width_ * sizeof(float));
  }

  void write(float* to, int64_t num_rows) const {
    for (int64_t place = 0; place < num_rows; ++place)
      std::memcpy(to + place * width_, row(place), width_ * sizeof(float));
  }

 private:
  int64_t width_;
  int64_t stride_;
  Buffer<float> rows_;
};

// Updates one panel of cells of some rows: the gates' sums become activations, in place.
inline void update_cells(float* sums, const float* input_gates, int64_t gate_stride,
                         const float* bias, int64_t num_rows, Floats cell_clip, float* cells,
                         int64_t cell_stride, float* shown, int64_t shown_stride) {
  for (int64_t row = 0; row < num_rows; ++row) {
    for (int lane = 0; lane < kPanel; lane += kLanes) {
      Floats gates[4];
      for (int gate = 0; gate < 4; ++gate) {
        const Floats sum = load(sums + (row * 4 + gate) * kPanel + lane);
        const Floats of_input = load(input_gates + gate * gate_stride + row * kPanel + lane);
        gates[gate] = sum + of_input + load(bias + gate * kPanel + lane);
        gates[gate] = gate == 2 ? tanh(gates[gate]) : sigmoid(gates[gate]);
        store(sums + (row * 4 + gate) * kPanel + lane, gates[gate]);
      }
      float* cell = cells + row * cell_stride + lane;
      const Floats kept = gates[1] * load(cell);
      const Floats updated = clip(fused(gates[0], gates[2], kept), cell_clip);
      store(cell, updated);
      store(shown + row * shown_stride + lane, gates[3] * tanh(updated));
    }
  }
}

// Copies a panel of cells of some rows out to unpadded arrays.
inline void save_panel(const Saved& saved, int64_t first_row, int64_t num_rows, int64_t panel,
                       int64_t num_cells, const float* gates, const State& cells,
                       const State& shown, int64_t state_row) {
  const int64_t first_cell = panel * kPanel;
  const size_t bytes = std::min<int64_t>(kPanel, num_cells - first_cell) * sizeof(float);
  for (int64_t row = 0; row < num_rows; ++row) {
    const int64_t to = first_row + row;
    for (int gate = 0; gate < 4; ++gate)
      std::memcpy(saved.gates + (to * 4 + gate) * num_cells + first_cell,
                  gates + (row * 4 + gate) * kPanel, bytes);
    std::memcpy(saved.cells + to * num_cells + first_cell,
                cells.row(state_row + row) + first_cell, bytes);
    std::memcpy(saved.shown + to * num_cells + first_cell,
                shown.row(state_row + row) + first_cell, bytes);
  }
}

inline bool is_zero(const State& state, int64_t num_rows) {
  for (int64_t row = 0; row < num_rows; ++row)
    for (int64_t place = 0; place < state.stride(); ++place)
      if (state.row(row)[place] != 0.0f) return false;
  return true;
}

// Runs one layer. `input_row(n)` is the vector of packed row n, `emit(n, output)` takes its output.
template <class P, class InputRow, class Emit>
void run_layer(const Layer& layer, const Steps& steps, const float* first_hidden,
               const float* first_cell, float* last_hidden, float* last_cell, const Saved& saved,
               InputRow input_row, Emit emit) {
  const int64_t num_sentences = steps.num_sentences();
  if (num_sentences == 0) return;
  const State hidden(num_sentences, layer.num_outputs);
  const State cells(num_sentences, layer.num_cells);
  const State shown(num_sentences, layer.num_cells);
  hidden.read(first_hidden, num_sentences);
  cells.read(first_cell, num_sentences);

  const int64_t gates_width = layer.input.num_panels * kPanel;
  const int64_t rows_at_once = std::max(num_sentences, kInputGatesAtOnce / gates_width);
  PreparedRows<P> inputs(rows_at_once, layer.input.num_inputs);
  PreparedRows<P> previous(num_sentences, layer.num_outputs);
  PreparedRows<P> wide(layer.has_projection() ? num_sentences : 0, layer.num_cells);
  const Buffer<float> input_gates(rows_at_once * gates_width);
  const Buffer<float> tile(kRowsInTile * 4 * kPanel);
  const Floats cell_clip = fill(layer.cell_clip);
  bool remembers = !is_zero(hidden, num_sentences);

  int64_t first_row = 0;  // of this step, among all rows
  int64_t rows_ahead = 0, rows_used = 0;  // rows whose input gates are there, and of them, gone
  for (int64_t step = 0; step < steps.number; ++step) {
    const int64_t num_rows = steps.sizes[step];
    if (rows_used == rows_ahead) {  // compute the input gates of the next steps
      rows_used = rows_ahead = 0;
      for (int64_t later = step; later < steps.number; ++later) {
        if (rows_ahead + steps.sizes[later] > rows_at_once) break;
        rows_ahead += steps.sizes[later];
      }
      for (int64_t row = 0; row < rows_ahead; ++row) inputs.set(row, input_row(first_row + row));
      // By some rows at a time, so that they stay in the cache while the weights pass by.
      for (int64_t row = 0; row < rows_ahead; row += 2 * kRowsInTile)
        multiply(inputs.from(row), std::min(2 * kRowsInTile, rows_ahead - row), layer.input, 0,
                 layer.input.num_panels,
                 {input_gates.get() + row * kPanel, kPanel, rows_ahead * kPanel});
    }

    for (int64_t row = 0; remembers && row < num_rows; ++row) previous.set(row, hidden.row(row));
    for (int64_t panel = 0; panel < layer.cell_panels(); ++panel) {
      for (int64_t row = 0; row < num_rows; row += kRowsInTile) {
        const int64_t some = std::min(kRowsInTile, num_rows - row);
        if (remembers)
          multiply(previous.from(row), some, layer.state, 4 * panel, 4,
                   {tile.get(), 4 * kPanel, kPanel});
        else
          std::fill_n(tile.get(), some * 4 * kPanel, 0.0f);
        update_cells(tile.get(),
                     input_gates.get() + (4 * panel * rows_ahead + rows_used + row) * kPanel,
                     rows_ahead * kPanel, layer.bias + 4 * panel * kPanel, some, cell_clip,
                     cells.row(row) + panel * kPanel, cells.stride(),
                     shown.row(row) + panel * kPanel, shown.stride());
        if (saved.gates)
          save_panel(saved, first_row + row, some, panel, layer.num_cells, tile.get(), cells,
                     shown, row);
      }
    }
    remembers = true;

    if (layer.has_projection()) {
      for (int64_t row = 0; row < num_rows; ++row) wide.set(row, shown.row(row));
      multiply(wide.from(0), num_rows, layer.projection, 0, layer.projection.num_panels,
               {hidden.row(0), hidden.stride()});
      for (int64_t row = 0; row < num_rows; ++row) {
        if (saved.narrow)
          std::memcpy(saved.narrow + (first_row + row) * layer.num_outputs, hidden.row(row),
                      layer.num_outputs * sizeof(float));
        float* narrow = hidden.row(row);
        for (int64_t place = 0; place < layer.num_outputs; place += kLanes)
          store(narrow + place, clip(load(narrow + place), fill(layer.output_clip)));
      }
    } else {
      for (int64_t row = 0; row < num_rows; ++row)
        std::memcpy(hidden.row(row), shown.row(row), layer.num_outputs * sizeof(float));
    }
    for (int64_t row = 0; row < num_rows; ++row) emit(first_row + row, hidden.row(row));
    first_row += num_rows;
    rows_used += num_rows;
  }
  hidden.write(last_hidden, num_sentences);
  cells.write(last_cell, num_sentences);
}

}  // namespace elmore
