// Rows times a packed weight matrix, in several precisions.
//
// The outputs of a weight matrix are grouped in panels of two vectors. Within a panel, weights are
// stored in the order in which they are read: input by input, or, if several narrow weights share
// 32 bits, by groups of inputs. A tile of some rows and one panel is summed in registers.
//
// Every output is one sum over the inputs in order, independent of the other rows. So a row's bits
// depend neither on the other rows nor on the number of threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

#include "lanes.h"

namespace elmore {

constexpr int kPanel = 2 * kLanes;
constexpr int kMaxTileRows = kLanes == 16 ? 12 : 6;  // times two vectors: most of the registers

// Inputs read before moving to the next panel; a panel of this many stays in the L1 cache.
constexpr int64_t kInputsAtOnce = 512;

// Rows that start a multiple of 4096 bytes apart evict each other from the cache.
constexpr int64_t kStagger = 16;

inline int64_t round_up(int64_t number, int64_t multiple) {
  return (number + multiple - 1) / multiple * multiple;
}

// Memory for one call, aligned to cache lines.
template <class T>
class Buffer {
 public:
  explicit Buffer(int64_t size) : items_(allocate(size)) {}
  T* get() const { return items_.get(); }
  T& operator[](int64_t index) const { return items_.get()[index]; }

 private:
  struct Free {
    void operator()(T* items) const { std::free(items); }
  };
  static T* allocate(int64_t size) {
    const size_t bytes = round_up(std::max<int64_t>(size, 1) * sizeof(T), 64);
    void* memory = std::aligned_alloc(64, bytes);
    if (memory == nullptr) throw std::bad_alloc();
    return static_cast<T*>(memory);
  }
  std::unique_ptr<T, Free> items_;
};

// Where the sums of a tile go; panels can be adjacent or far apart.
struct Output {
  float* first;
  int64_t row_stride;
  int64_t panel_stride = kPanel;

  float* at(int64_t row, int64_t panel) const {
    return first + row * row_stride + panel * panel_stride;
  }
};

// A packed weight matrix; exports.cpp has its plain C form.
struct Matrix {
  const char* panels;
  const float* scales;  // int8: one scale per output, then one integer correction per output
  int64_t num_inputs;
  int64_t num_panels;
};

// ---- f32: exact.

struct F32 {
  using Unit = float;                    // the part of a row that is multiplied in one step
  static constexpr int kGroup = 1;       // adjacent weights of one output
  static constexpr int kGroupBytes = 4;  // and their size
  static constexpr bool kBlocksInputs = true;

  static int64_t num_units(int64_t num_inputs) { return num_inputs; }
  static int64_t panel_bytes(int64_t num_inputs) { return num_inputs * kPanel * 4; }

  static float prepare(const float* row, int64_t num_inputs, Unit* to) {
    std::memcpy(to, row, num_inputs * sizeof(float));
    return 1.0f;
  }

  static void pack_group(const Floats* inputs, char* to, Floats, Ints*) {
    store((float*)to, inputs[0]);
  }

  static Floats load_group(const char* weights) { return load((const float*)weights); }
  static Floats add(Floats sums, Floats x, Floats weights) { return fused(x, weights, sums); }
};

// ---- f16: as exact as f32 if the weights have no more bits, as in models stored in f16. Sums are
// the same to the bit, and half as many bytes are read.

struct F16 : F32 {
  static constexpr int kGroupBytes = 2;

  static int64_t panel_bytes(int64_t num_inputs) { return num_inputs * kPanel * kGroupBytes; }

  static void pack_group(const Floats* inputs, char* to, Floats, Ints*) {
    store_parts<kGroupBytes>(to, to_f16(inputs[0]));
  }

  static Floats load_group(const char* weights) { return load_f16(weights); }
};

inline Ints to_bf16(Floats numbers) {
  const Ints bits = (Ints)numbers;
  const Ints high = (Ints)((Words)(bits + 0x7fff + ((bits >> 16) & 1)) >> 16);  // ties to even
  return numbers != numbers ? (Ints)((Words)bits >> 16) | 0x40 : high;
}

inline uint16_t to_bf16(float number) {
  uint32_t bits;
  std::memcpy(&bits, &number, 4);
  if (std::isnan(number)) return (bits >> 16) | 0x40;
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;  // to nearest, ties to even
}

// ---- bf16: weights keep 8 bits of mantissa. If the CPU has bf16 instructions, inputs are rounded
// too; otherwise they stay f32.

struct BF16 {
  static constexpr bool kBlocksInputs = true;

#if defined(__AVX512BF16__)
  using Unit = int32_t;  // two inputs as bf16
  static constexpr int kGroup = 2;
  static constexpr int kGroupBytes = 4;

  static float prepare(const float* row, int64_t num_inputs, Unit* to) {
    typedef uint16_t PartOfUnit __attribute__((may_alias));  // written in parts, read as a whole unit
    PartOfUnit* numbers = (PartOfUnit*)to;
    int64_t input = 0;
    for (; input + kLanes <= num_inputs; input += kLanes)
      store_parts<2>(numbers + input, to_bf16(load(row + input)));
    for (; input < num_inputs; ++input) numbers[input] = to_bf16(row[input]);
    if (num_inputs % kGroup) numbers[num_inputs] = 0;
    return 1.0f;
  }

  static Ints load_group(const char* weights) { return load_ints(weights); }
  static Floats add(Floats sums, Ints x, Ints weights) {
    return add_bf16_products(sums, x, weights);
  }
#else
  using Unit = float;
  static constexpr int kGroup = 1;
  static constexpr int kGroupBytes = 2;

  static float prepare(const float* row, int64_t num_inputs, Unit* to) {
    return F32::prepare(row, num_inputs, to);
  }

  static Floats load_group(const char* weights) { return load_bf16(weights); }
  static Floats add(Floats sums, Floats x, Floats weights) { return fused(x, weights, sums); }
#endif

  static int64_t num_units(int64_t num_inputs) { return round_up(num_inputs, kGroup) / kGroup; }
  static int64_t panel_bytes(int64_t num_inputs) {
    return num_units(num_inputs) * kPanel * kGroupBytes;
  }

  static void pack_group(const Floats* inputs, char* to, Floats, Ints*) {
    Ints packed = to_bf16(inputs[0]);
    if constexpr (kGroup == 2) packed |= to_bf16(inputs[1]) << 16;
    store_parts<kGroupBytes>(to, packed);
  }
};

// ---- int8: weights are integers up to 127 times one scale per output. Inputs are integers times
// one scale per row: 8 bits if the CPU has VNNI, else 12.

struct INT8 {
  using Unit = int32_t;
  static constexpr bool kBlocksInputs = false;  // sums are integers until the end

  // The largest absolute value of the inputs. Values are compared by their bits, where NaN is
  // largest, so one NaN makes the whole row NaN.
  static float largest(const float* row, int64_t num_inputs) {
    Ints found = fill(0);
    int64_t input = 0;
    for (; input + kLanes <= num_inputs; input += kLanes) {
      const Ints size = (Ints)absolute(load(row + input));
      found = size > found ? size : found;
    }
    int32_t most = 0;
    for (int lane = 0; lane < kLanes; ++lane) most = std::max<int32_t>(most, found[lane]);
    for (; input < num_inputs; ++input) {
      const float size = std::fabs(row[input]);
      int32_t bits;
      std::memcpy(&bits, &size, 4);
      most = std::max(most, bits);
    }
    float number;
    std::memcpy(&number, &most, 4);
    return number;
  }

#if defined(__AVX512VNNI__)
  static constexpr int kGroup = 4;
  static constexpr int kOffset = 128;  // inputs are stored unsigned

  static int limit(int64_t) { return 127; }
  static Ints load_group(const char* weights) { return load_ints(weights); }
  static Ints add(Ints sums, Ints x, Ints weights) { return add_byte_products(sums, x, weights); }
#else
  static constexpr int kGroup = 2;
  static constexpr int kOffset = 0;

  // Small enough that the sum of all products fits in 32 bits.
  static int limit(int64_t num_inputs) {
    return (int)std::clamp<int64_t>(INT32_MAX / 127 / std::max<int64_t>(num_inputs, 1), 1, 2047);
  }
  static Ints load_group(const char* weights) { return load_pairs(weights); }
  static Ints add(Ints sums, Ints x, Ints weights) { return sums + multiply_pairs(x, weights); }
#endif

  static constexpr int kGroupBytes = kGroup;

  static int64_t num_units(int64_t num_inputs) { return round_up(num_inputs, kGroup) / kGroup; }
  static int64_t panel_bytes(int64_t num_inputs) {
    return num_units(num_inputs) * kPanel * kGroupBytes;
  }

  // Also adds up the integers of each output.
  static void pack_group(const Floats* inputs, char* to, Floats scale, Ints* totals) {
    Ints packed = fill(0);
    for (int input = 0; input < kGroup; ++input) {
      const Floats rounder = fill(12582912.0f);  // see exp_minus_one
      const Floats whole = (inputs[input] / scale + rounder) - rounder;
      // NaN, of a scale that is NaN, becomes 0.
      const Ints number = whole != whole ? fill(0) : __builtin_convertvector(whole, Ints);
      packed |= (number & 0xff) << 8 * input;
      *totals += number;
    }
    store_parts<kGroupBytes>(to, packed);
  }

  static float prepare(const float* row, int64_t num_inputs, Unit* to) {
    const float most = largest(row, num_inputs);
    if (!(most > 0.0f)) {
      prepare_zeros(num_inputs, to);
      return most;  // zero or NaN
    }
    using Number = std::conditional_t<kGroup == 2, int16_t, uint8_t>;
    typedef Number Numbers __attribute__((vector_size(kLanes * sizeof(Number))));
    typedef Number PartOfUnit __attribute__((may_alias));  // written in parts, read as a whole unit
    PartOfUnit* numbers = (PartOfUnit*)to;
    const float inverse = limit(num_inputs) / most;
    const Floats rounder = fill(12582912.0f);  // see exp_minus_one
    int64_t input = 0;
    for (; input + kLanes <= num_inputs; input += kLanes) {
      const Floats whole = (load(row + input) * inverse + rounder) - rounder;
      const Numbers narrow =
          __builtin_convertvector(__builtin_convertvector(whole, Ints) + kOffset, Numbers);
      std::memcpy(numbers + input, &narrow, sizeof narrow);
    }
    for (; input < num_inputs; ++input)
      numbers[input] = (Number)(std::lrintf(row[input] * inverse) + kOffset);
    for (; input < num_units(num_inputs) * kGroup; ++input) numbers[input] = kOffset;
    return most / limit(num_inputs);
  }

  static void prepare_zeros(int64_t num_inputs, Unit* to) {
    std::fill_n((uint8_t*)to, num_units(num_inputs) * sizeof(Unit), (uint8_t)kOffset);
  }
};

// Rows converted for a precision.
template <class P>
struct Rows {
  const typename P::Unit* first;
  int64_t stride;
  const float* scales;  // one per row; int8 only
};

// ---- A tile: some rows by some panels.

// Adds the products of some units of the rows and their weights. Loops with constant bounds are
// unrolled, so that the sums stay in registers.
template <class P, int kRows, int kVectors, class Sums>
inline void add_products(const typename P::Unit* rows, int64_t row_stride,
                         const char* const* panels, int64_t units,
                         Sums (&sums)[kRows][kVectors]) {
  for (int64_t unit = 0; unit < units; ++unit) {
    decltype(P::load_group(nullptr)) weights[kVectors];
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v)
      weights[v] =
          P::load_group(panels[v / 2] + (unit * kPanel + v % 2 * kLanes) * P::kGroupBytes);
#pragma GCC unroll 16
    for (int row = 0; row < kRows; ++row) {
      const auto x = fill(rows[row * row_stride + unit]);
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) sums[row][v] = P::add(sums[row][v], x, weights[v]);
    }
  }
}

// Not inlined, so that the compiler allocates registers for each tile on its own, not together
// with the code around the call.

template <class P, int kRows, int kPanels>
__attribute__((noinline)) void multiply_tile(const Rows<P>& rows, const Matrix& matrix,
                                             int64_t panel, int64_t first_unit, int64_t units,
                                             bool adds, Output output) {
  constexpr int kVectors = 2 * kPanels;
  const char* panels[kPanels];
  const int64_t panel_bytes = P::panel_bytes(matrix.num_inputs);
  const int64_t skipped = first_unit * kPanel * P::kGroupBytes;
  for (int p = 0; p < kPanels; ++p)
    panels[p] = matrix.panels + (panel + p) * panel_bytes + skipped;
  if constexpr (P::kBlocksInputs) {
    Floats sums[kRows][kVectors];
#pragma GCC unroll 16
    for (int row = 0; row < kRows; ++row)
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v)
        sums[row][v] = adds ? load(output.at(row, v / 2) + v % 2 * kLanes) : fill(0.0f);
    add_products<P>(rows.first + first_unit, rows.stride, panels, units, sums);
#pragma GCC unroll 16
    for (int row = 0; row < kRows; ++row)
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v)
        store(output.at(row, v / 2) + v % 2 * kLanes, sums[row][v]);
  } else {
    Ints sums[kRows][kVectors] = {};
    add_products<P>(rows.first, rows.stride, panels, units, sums);
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      const float* scale = matrix.scales + panel * kPanel + v * kLanes;
      const float* correction = scale + matrix.num_panels * kPanel;
#pragma GCC unroll 16
      for (int row = 0; row < kRows; ++row) {
        const Floats whole =
            __builtin_convertvector(sums[row][v] - load_ints(correction), Floats);
        store(output.at(row, v / 2) + v % 2 * kLanes, whole * load(scale) * rows.scales[row]);
      }
    }
  }
}

// With few rows, registers are idle and each sum waits for the last; so use more panels.
constexpr int panels_for(int num_rows) {
  return num_rows == 1 ? 4 : num_rows <= kMaxTileRows / 2 ? 2 : 1;
}

template <class P, int kRows = kMaxTileRows>
void dispatch_tile(int64_t num_rows, int num_panels, const Rows<P>& rows, const Matrix& matrix,
                   int64_t panel, int64_t first_unit, int64_t units, bool adds, Output output) {
  if constexpr (kRows >= 1) {
    if (num_rows != kRows)
      return dispatch_tile<P, kRows - 1>(num_rows, num_panels, rows, matrix, panel, first_unit,
                                         units, adds, output);
    constexpr int kMany = panels_for(kRows);
    if (num_panels == kMany)
      return multiply_tile<P, kRows, kMany>(rows, matrix, panel, first_unit, units, adds, output);
    for (int p = 0; p < num_panels; ++p)
      multiply_tile<P, kRows, 1>(rows, matrix, panel + p, first_unit, units, adds,
                                 {output.at(0, p), output.row_stride, output.panel_stride});
  }
}

// Multiplies rows by some panels of a matrix.
template <class P>
void multiply(const Rows<P>& rows, int64_t num_rows, const Matrix& matrix, int64_t first_panel,
              int64_t num_panels, Output output) {
  if (num_rows == 0) return;
  const int64_t all_units = P::num_units(matrix.num_inputs);
  const int64_t units_at_once = P::kBlocksInputs ? kInputsAtOnce : std::max<int64_t>(all_units, 1);
  const int64_t num_tiles = (num_rows + kMaxTileRows - 1) / kMaxTileRows;
  const int most_rows = (int)((num_rows + num_tiles - 1) / num_tiles);
  for (int64_t unit = 0; unit == 0 || unit < all_units; unit += units_at_once) {
    const int64_t units = std::min(units_at_once, all_units - unit);
    for (int64_t panel = 0; panel < num_panels; panel += panels_for(most_rows)) {
      const int panels = (int)std::min<int64_t>(panels_for(most_rows), num_panels - panel);
      int64_t row = 0;
      for (int64_t tile = 0; tile < num_tiles; ++tile) {
        const int64_t tile_rows = (num_rows - row + num_tiles - tile - 1) / (num_tiles - tile);
        const Rows<P> part = {rows.first + row * rows.stride, rows.stride,
                              rows.scales ? rows.scales + row : nullptr};
        dispatch_tile<P>(tile_rows, panels, part, matrix, first_panel + panel, unit, units,
                         unit > 0,
                         {output.at(row, panel), output.row_stride, output.panel_stride});
        row += tile_rows;
      }
    }
  }
}

// Rows converted for a precision, in their own memory.
template <class P>
class PreparedRows {
 public:
  PreparedRows(int64_t max_rows, int64_t num_inputs)
      : num_inputs_(num_inputs),
        stride_(round_up(P::num_units(num_inputs), kStagger) + kStagger),
        units_(max_rows * stride_),
        scales_(max_rows) {}

  void set(int64_t index, const float* row) {
    scales_[index] = P::prepare(row, num_inputs_, units_.get() + index * stride_);
  }

  Rows<P> from(int64_t row) const {
    return {units_.get() + row * stride_, stride_, scales_.get() + row};
  }

 private:
  int64_t num_inputs_;
  int64_t stride_;
  Buffer<typename P::Unit> units_;
  Buffer<float> scales_;
};

// Reads weights of one panel, by blocks of kLanes inputs.
class PanelReader {
 public:
  PanelReader(const float* weights, int64_t output_stride, int64_t input_stride,
              int64_t num_inputs, const int32_t* sources)
      : input_stride_(input_stride), num_inputs_(num_inputs) {
    for (int output = 0; output < kPanel; ++output) {
      rows_[output] = sources[output] < 0 ? nullptr : weights + sources[output] * output_stride;
      is_full_ = is_full_ && rows_[output] != nullptr;
      is_adjacent_ = is_adjacent_ && is_full_ && rows_[output] == rows_[0] + output;
    }
  }

  // block[i][v]: input `first` + i of the outputs in vector v; zeros past the last input.
  void read(int64_t first, Floats (&block)[kLanes][2]) const {
    if (is_adjacent_ && first + kLanes <= num_inputs_) {
      for (int i = 0; i < kLanes; ++i)
        for (int v = 0; v < 2; ++v)
          block[i][v] = load(rows_[0] + (first + i) * input_stride_ + v * kLanes);
    } else if (is_full_ && input_stride_ == 1 && first + kLanes <= num_inputs_) {
      for (int v = 0; v < 2; ++v) {
        Floats square[kLanes];
        for (int output = 0; output < kLanes; ++output)
          square[output] = load(rows_[v * kLanes + output] + first);
        transpose(square);
        for (int i = 0; i < kLanes; ++i) block[i][v] = square[i];
      }
    } else {
      for (int i = 0; i < kLanes; ++i)
        for (int output = 0; output < kPanel; ++output) {
          const float* row = first + i < num_inputs_ ? rows_[output] : nullptr;
          block[i][output / kLanes][output % kLanes] = row ? row[(first + i) * input_stride_] : 0.0f;
        }
    }
  }

 private:
  const float* rows_[kPanel];
  int64_t input_stride_, num_inputs_;
  bool is_full_ = true;      // no output is padding
  bool is_adjacent_ = true;  // the outputs of an input are adjacent in memory
};

// The scales of a panel's outputs in int8: NaN if a weight is NaN, which is the largest by its bits.
inline void find_scales(const PanelReader& reader, int64_t num_inputs, Floats (&scale)[2]) {
  Ints most[2] = {};
  Floats block[kLanes][2];
  for (int64_t first = 0; first < num_inputs; first += kLanes) {
    reader.read(first, block);
    for (int i = 0; i < kLanes; ++i)
      for (int v = 0; v < 2; ++v) {
        const Ints size = (Ints)absolute(block[i][v]);
        most[v] = size > most[v] ? size : most[v];
      }
  }
  for (int v = 0; v < 2; ++v)
    scale[v] = most[v] == 0 ? fill(1.0f) : (Floats)most[v] / 127.0f;
}

// Packs a weight matrix. Output o of the panels is row sources[o] of the weights, or zeros if
// sources[o] is negative.
template <class P>
void pack(const float* weights, int64_t output_stride, int64_t input_stride, int64_t num_inputs,
          const int32_t* sources, int64_t num_panels, char* panels, float* scales) {
  constexpr bool kIsScaled = std::is_same_v<P, INT8>;
  const int64_t padded_inputs = P::num_units(num_inputs) * P::kGroup;
  for (int64_t panel = 0; panel < num_panels; ++panel) {
    const PanelReader reader(weights, output_stride, input_stride, num_inputs,
                             sources + panel * kPanel);
    Floats scale[2] = {fill(1.0f), fill(1.0f)};
    if constexpr (kIsScaled) find_scales(reader, num_inputs, scale);
    Ints totals[2] = {};
    char* to = panels + panel * P::panel_bytes(num_inputs);
    Floats block[kLanes][2];
    for (int64_t first = 0; first < padded_inputs; first += kLanes) {
      reader.read(first, block);
      const int number = (int)std::min<int64_t>(kLanes, padded_inputs - first);
      for (int input = 0; input < number; input += P::kGroup)
        for (int v = 0; v < 2; ++v, to += kLanes * P::kGroupBytes) {
          Floats group[P::kGroup];
          for (int i = 0; i < P::kGroup; ++i) group[i] = block[input + i][v];
          P::pack_group(group, to, scale[v], &totals[v]);
        }
    }
    if constexpr (kIsScaled)
      for (int v = 0; v < 2; ++v) {
        const Ints correction = totals[v] * INT8::kOffset;
        float* to_scales = scales + panel * kPanel + v * kLanes;
        store(to_scales, scale[v]);
        std::memcpy(to_scales + num_panels * kPanel, &correction, sizeof correction);
      }
  }
}

}  // namespace elmore
