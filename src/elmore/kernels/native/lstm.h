// The projected LSTM with clipped cells and a clipped projection (Sak et al., 2014): one direction.
//
// Rows are packed: step after step, longest sentence first, so the rows of a step are the first
// rows of the step before. When a sentence has ended, its state stays unchanged.
//
// Gates are in the order input, forget, candidate, output. In packed matrices the four gates of a
// panel of cells are adjacent, so a tile has everything needed to update these cells.
#pragma once

#include <numeric>
#include <vector>

#include "distinct.h"
#include "matrix.h"
#include "team.h"

namespace elmore {

// The number of input gate values kept between steps: some megabytes, which fit in the caches.
constexpr int64_t kInputGatesAtOnce = 2 << 20;
constexpr int64_t kRowsInTile = 48;

// The same for the distinct inputs of all steps, which need not fit in the caches: reading a row is
// much faster than computing it.
constexpr int64_t kDistinctGatesAtOnce = 16 << 20;

struct Layer {
  Matrix input;       // (4 gates of C cells, D)
  Matrix state;       // (4 gates of C cells, P)
  Matrix projection;  // (P, C); no panels if there is no projection
  const float* bias;  // 4 gates of C cells, in the order of the panels
  float cell_clip;    // infinite if there is no clip
  float output_clip;
  int64_t num_cells;
  int64_t num_outputs;

  bool has_projection() const { return projection.num_panels > 0; }
  int64_t cell_panels() const { return state.num_panels / 4; }
};

struct Steps {
  const int32_t* sizes;  // unfinished sentences at each step
  int64_t number;

  int64_t num_sentences() const { return number ? sizes[0] : 0; }
  int64_t num_rows() const { return std::accumulate(sizes, sizes + number, int64_t{0}); }
};

// What training saves of each row. Pointers may be null.
struct Saved {
  float* gates = nullptr;   // (N, 4C) after the nonlinearity, in the usual order
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

  float* row(int64_t index) const { return rows_.get() + index * stride_; }
  int64_t stride() const { return stride_; }

  void read(const float* from, int64_t num_rows) const {
    for (int64_t i = 0; i < num_rows; ++i)
      std::memcpy(row(i), from + i * width_, width_ * sizeof(float));
  }

  void write(float* to, int64_t num_rows) const {
    for (int64_t i = 0; i < num_rows; ++i)
      std::memcpy(to + i * width_, row(i), width_ * sizeof(float));
  }

 private:
  int64_t width_;
  int64_t stride_;
  Buffer<float> rows_;
};

// Some adjacent panels.
struct Range {
  int64_t first, last;

  int64_t size() const { return last - first; }
  static Range part(int64_t number, int64_t part, int64_t num_parts) {
    return {number * part / num_parts, number * (part + 1) / num_parts};
  }
};

// The products of inputs and weights, for one panel of cells of some rows.
struct InputGates {
  const float* first;
  int64_t row_stride;
  int64_t gate_stride;
  const int32_t* indices;  // of each row among the distinct inputs; null if there is one per row

  const float* row(int64_t row) const {
    return first + (indices ? indices[row] : row) * row_stride;
  }
};

// Updates one panel of cells of some rows; replaces the sums of the gates with activations.
inline void update_cells(float* sums, const InputGates& input_gates, const float* bias,
                         int64_t num_rows, Floats cell_clip, float* cells, int64_t cell_stride,
                         float* shown, int64_t shown_stride) {
  for (int64_t row = 0; row < num_rows; ++row) {
    const float* of_row = input_gates.row(row);
    for (int lane = 0; lane < kPanel; lane += kLanes) {
      Floats gates[4];
      for (int gate = 0; gate < 4; ++gate) {
        const Floats sum = load(sums + (row * 4 + gate) * kPanel + lane);
        const Floats of_input = load(of_row + gate * input_gates.gate_stride + lane);
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

// Copies a panel of cells of some rows to unpadded arrays.
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
    for (int64_t column = 0; column < state.stride(); ++column)
      if (state.row(row)[column] != 0.0f) return false;
  return true;
}

// One run of a layer. The team shares these members; Member has what each thread needs on its own.
template <class P>
class LayerRun {
 public:
  LayerRun(const Layer& layer, const Steps& steps, int team_size)
      : layer_(layer),
        steps_(steps),
        rows_at_once_(std::min(
            steps.num_rows(), std::max(steps.num_sentences(), kInputGatesAtOnce / gates_width()))),
        hidden_(steps.num_sentences(), layer.num_outputs),
        cells_(steps.num_sentences(), layer.num_cells),
        shown_(steps.num_sentences(), layer.num_cells),
        input_gates_(rows_at_once_ * gates_width()) {
    members_.reserve(team_size);
    for (int member = 0; member < team_size; ++member) members_.emplace_back(*this);
  }

  // `input_row(n)` returns the input of packed row n, `emit(n, output)` receives its output. If
  // `repeats`, many inputs are expected to be equal, and are multiplied once.
  template <class InputRow, class Emit>
  void run(const float* first_hidden, const float* first_cell, float* last_hidden,
           float* last_cell, const Saved& saved, bool repeats, InputRow input_row, Emit emit) {
    const int64_t num_sentences = steps_.num_sentences();
    if (num_sentences == 0) return;
    if (repeats && members_.size() == 1) prepare_distinct_inputs(input_row);
    hidden_.read(first_hidden, num_sentences);
    cells_.read(first_cell, num_sentences);
    remembers_ = !is_zero(hidden_, num_sentences);
    Team team;
    team.run((int)members_.size(),
             [&](int member) { run_member(team, member, saved, input_row, emit); });
    hidden_.write(last_hidden, num_sentences);
    cells_.write(last_cell, num_sentences);
  }

 private:
  // Rows converted for a product. Every member converts all rows: a team has only a few.
  struct Member {
    explicit Member(const LayerRun& run)
        : inputs(run.rows_at_once_, run.layer_.input.num_inputs),
          previous(run.steps_.num_sentences(), run.layer_.num_outputs),
          wide(run.layer_.has_projection() ? run.steps_.num_sentences() : 0, run.layer_.num_cells),
          tile(kRowsInTile * 4 * kPanel) {}

    PreparedRows<P> inputs, previous, wide;
    Buffer<float> tile;
  };

  int64_t gates_width() const { return layer_.input.num_panels * kPanel; }
  int64_t distinct_stride() const { return gates_width() + kStagger; }

  template <class InputRow, class Emit>
  void run_member(Team& team, int number, const Saved& saved, InputRow input_row, Emit emit) {
    Member& member = members_[number];
    // This member's panels.
    const Range cells = Range::part(layer_.cell_panels(), number, team.size());
    const Range outputs = Range::part(layer_.projection.num_panels, number, team.size());
    int64_t first_row = 0;  // of this step, among all rows
    int64_t rows_ahead = 0, rows_used = 0;  // rows with input gates, and those used up
    for (int64_t step = 0; step < steps_.number; ++step) {
      const int64_t num_rows = steps_.sizes[step];
      if (distinct_gates_) {
        rows_used = first_row;
      } else if (rows_used == rows_ahead) {
        rows_ahead = prepare_inputs(member, cells, step, first_row, input_row);
        rows_used = 0;
      }
      update_panels(member, cells, step, num_rows, rows_ahead, rows_used, first_row, saved);
      team.meet();  // all cells are updated
      if (layer_.has_projection())
        project(member, outputs, num_rows, first_row, saved);
      else if (number == 0)
        for (int64_t row = 0; row < num_rows; ++row)
          std::memcpy(hidden_.row(row), shown_.row(row), layer_.num_outputs * sizeof(float));
      team.meet();  // all outputs are computed
      for (int64_t row = 0; number == 0 && row < num_rows; ++row)
        emit(first_row + row, hidden_.row(row));
      first_row += num_rows;
      rows_used += num_rows;
    }
  }

  // Computes the input gates of as many next steps as fit; returns the number of their rows.
  template <class InputRow>
  int64_t prepare_inputs(Member& member, Range cells, int64_t step, int64_t first_row,
                         InputRow input_row) {
    int64_t num_rows = 0;
    for (; step < steps_.number && num_rows + steps_.sizes[step] <= rows_at_once_; ++step)
      num_rows += steps_.sizes[step];
    for (int64_t row = 0; row < num_rows; ++row)
      member.inputs.set(row, input_row(first_row + row));
    const int64_t first = 4 * cells.first, number = 4 * cells.size();
    // Some rows at a time, so that they stay in the cache while the weights stream through.
    for (int64_t row = 0; row < num_rows; row += 2 * kRowsInTile)
      multiply(member.inputs.from(row), std::min(2 * kRowsInTile, num_rows - row), layer_.input,
               first, number,
               {input_gates_.get() + (first * num_rows + row) * kPanel, kPanel, num_rows * kPanel});
    return num_rows;
  }

  // Computes the input gates of all steps, once for equal inputs, if that saves enough.
  template <class InputRow>
  void prepare_distinct_inputs(InputRow input_row) {
    const int64_t num_rows = steps_.num_rows();
    if (num_rows < kRowsInTile) return;
    distinct_ = find_distinct(num_rows, layer_.input.num_inputs, input_row);
    const int64_t number = distinct_.rows.size();
    if (4 * number > 3 * num_rows || number * distinct_stride() > kDistinctGatesAtOnce) return;
    distinct_gates_ = std::make_unique<Buffer<float>>(number * distinct_stride());
    PreparedRows<P>& inputs = members_[0].inputs;
    const int64_t at_once = std::min(2 * kRowsInTile, rows_at_once_);
    for (int64_t first = 0; first < number; first += at_once) {
      const int64_t some = std::min(at_once, number - first);
      for (int64_t row = 0; row < some; ++row)
        inputs.set(row, input_row(distinct_.rows[first + row]));
      multiply(inputs.from(0), some, layer_.input, 0, layer_.input.num_panels,
               {distinct_gates_->get() + first * distinct_stride(), distinct_stride()});
    }
  }

  InputGates input_gates(int64_t panel, int64_t rows_ahead, int64_t rows_used, int64_t row) const {
    if (distinct_gates_)
      return {distinct_gates_->get() + 4 * panel * kPanel, distinct_stride(), kPanel,
              distinct_.indices.data() + rows_used + row};
    return {input_gates_.get() + (4 * panel * rows_ahead + rows_used + row) * kPanel, kPanel,
            rows_ahead * kPanel, nullptr};
  }

  void update_panels(Member& member, Range cells, int64_t step, int64_t num_rows,
                     int64_t rows_ahead, int64_t rows_used, int64_t first_row,
                     const Saved& saved) {
    const bool remembers = remembers_ || step > 0;
    for (int64_t row = 0; remembers && row < num_rows; ++row)
      member.previous.set(row, hidden_.row(row));
    float* tile = member.tile.get();
    for (int64_t turn = 0; turn < cells.size(); ++turn) {
      // Alternate the direction: the weights read last are still in the cache.
      const int64_t panel = step % 2 ? cells.last - 1 - turn : cells.first + turn;
      for (int64_t row = 0; row < num_rows; row += kRowsInTile) {
        const int64_t some = std::min(kRowsInTile, num_rows - row);
        if (remembers)
          multiply(member.previous.from(row), some, layer_.state, 4 * panel, 4,
                   {tile, 4 * kPanel, kPanel});
        else
          std::fill_n(tile, some * 4 * kPanel, 0.0f);
        update_cells(tile, input_gates(panel, rows_ahead, rows_used, row),
                     layer_.bias + 4 * panel * kPanel, some, fill(layer_.cell_clip),
                     cells_.row(row) + panel * kPanel, cells_.stride(),
                     shown_.row(row) + panel * kPanel, shown_.stride());
        if (saved.gates)
          save_panel(saved, first_row + row, some, panel, layer_.num_cells, tile, cells_, shown_,
                     row);
      }
    }
  }

  void project(Member& member, Range outputs, int64_t num_rows, int64_t first_row,
               const Saved& saved) {
    for (int64_t row = 0; row < num_rows; ++row) member.wide.set(row, shown_.row(row));
    const int64_t first = outputs.first * kPanel;
    multiply(member.wide.from(0), num_rows, layer_.projection, outputs.first, outputs.size(),
             {hidden_.row(0) + first, hidden_.stride()});
    const int64_t number = std::min(outputs.last * kPanel, layer_.num_outputs) - first;
    for (int64_t row = 0; row < num_rows; ++row) {
      float* narrow = hidden_.row(row) + first;
      if (saved.narrow)
        std::memcpy(saved.narrow + (first_row + row) * layer_.num_outputs + first, narrow,
                    std::max<int64_t>(number, 0) * sizeof(float));
      for (int64_t column = 0; column < number; column += kLanes)
        store(narrow + column, clip(load(narrow + column), fill(layer_.output_clip)));
    }
  }

  const Layer layer_;
  const Steps steps_;
  const int64_t rows_at_once_;
  const State hidden_, cells_, shown_;
  const Buffer<float> input_gates_;
  Distinct distinct_;
  std::unique_ptr<Buffer<float>> distinct_gates_;  // null if every row has its own
  bool remembers_ = false;  // whether the first hidden state is nonzero
  std::vector<Member> members_;
};

}  // namespace elmore
