// SIMD vectors: 16 floats with AVX-512, 8 with AVX2.
//
// Most arithmetic uses the compiler's vector types. All arithmetic intrinsics are in this file;
// matrix.h only checks for BF16 and VNNI instructions. ELMORE_WIDE emulates 16 lanes on a CPU with
// 8: slow, but it lets the AVX-512 code be tested anywhere.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace elmore {

#if defined(__AVX512F__) || defined(ELMORE_WIDE)
constexpr int kLanes = 16;
#else
constexpr int kLanes = 8;
#endif

typedef float Floats __attribute__((vector_size(kLanes * 4)));
typedef int32_t Ints __attribute__((vector_size(kLanes * 4)));
typedef uint32_t Words __attribute__((vector_size(kLanes * 4)));

inline Floats load(const float* from) {
  Floats lanes;
  std::memcpy(&lanes, from, sizeof lanes);
  return lanes;
}

inline Ints load_ints(const void* from) {
  Ints lanes;
  std::memcpy(&lanes, from, sizeof lanes);
  return lanes;
}

inline void store(float* to, Floats lanes) { std::memcpy(to, &lanes, sizeof lanes); }

// x - 0 equals x for every x, and compilers know it. x + 0 does not, for x = -0.
inline Floats fill(float number) { return number - Floats{}; }

inline Ints fill(int32_t number) { return Ints{} + number; }

// a * b + c, rounded once. Always written explicitly: a compiler that chooses where to fuse could
// choose differently in two copies of the same formula, and a row's bits would depend on the copy.
inline Floats fused(Floats a, Floats b, Floats c);

// Loads consecutive bf16 numbers as floats.
inline Floats load_bf16(const void* from);

// Loads consecutive f16 numbers as floats; and rounds floats to f16, in the low half of each lane.
inline Floats load_f16(const void* from);
inline Ints to_f16(Floats numbers);

// Loads signed bytes, two per lane, as pairs of 16-bit numbers; and multiplies and adds such pairs.
inline Ints load_pairs(const void* from);
inline Ints multiply_pairs(Ints a, Ints b);

#if defined(__AVX512F__)

inline Floats fused(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }

inline Floats load_bf16(const void* from) {
  return (Floats)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((__m256i*)from)), 16);
}

inline Floats load_f16(const void* from) {
  return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)from));
}

inline Ints to_f16(Floats numbers) {
  return (Ints)_mm512_cvtepu16_epi32(_mm512_cvtps_ph(numbers, _MM_FROUND_TO_NEAREST_INT));
}

inline Ints load_pairs(const void* from) {
  return (Ints)_mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i*)from));
}

inline Ints multiply_pairs(Ints a, Ints b) {
  return (Ints)_mm512_madd_epi16((__m512i)a, (__m512i)b);
}

#elif !defined(ELMORE_WIDE)

inline Floats fused(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }

inline Floats load_bf16(const void* from) {
  return (Floats)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((__m128i*)from)), 16);
}

inline Floats load_f16(const void* from) {
  return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)from));
}

inline Ints to_f16(Floats numbers) {
  return (Ints)_mm256_cvtepu16_epi32(_mm256_cvtps_ph(numbers, _MM_FROUND_TO_NEAREST_INT));
}

inline Ints load_pairs(const void* from) {
  return (Ints)_mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i*)from));
}

inline Ints multiply_pairs(Ints a, Ints b) {
  return (Ints)_mm256_madd_epi16((__m256i)a, (__m256i)b);
}

#else  // lane by lane

inline Floats fused(Floats a, Floats b, Floats c) {
  for (int lane = 0; lane < kLanes; ++lane) c[lane] = __builtin_fmaf(a[lane], b[lane], c[lane]);
  return c;
}

inline Floats load_bf16(const void* from) {
  Ints bits;
  for (int lane = 0; lane < kLanes; ++lane) {
    uint16_t high;
    std::memcpy(&high, (const char*)from + 2 * lane, 2);
    bits[lane] = (int32_t)((uint32_t)high << 16);
  }
  return (Floats)bits;
}

inline Floats load_f16(const void* from) {
  Floats numbers;
  for (int lane = 0; lane < kLanes; ++lane) {
    uint16_t half;
    std::memcpy(&half, (const char*)from + 2 * lane, 2);
    numbers[lane] = _cvtsh_ss(half);
  }
  return numbers;
}

inline Ints to_f16(Floats numbers) {
  Ints halves;
  for (int lane = 0; lane < kLanes; ++lane)
    halves[lane] = _cvtss_sh(numbers[lane], _MM_FROUND_TO_NEAREST_INT);
  return halves;
}

inline Ints load_pairs(const void* from) {
  const int8_t* bytes = (const int8_t*)from;
  Ints pairs;
  for (int lane = 0; lane < kLanes; ++lane)
    pairs[lane] = (uint16_t)bytes[2 * lane] | (uint32_t)(uint16_t)bytes[2 * lane + 1] << 16;
  return pairs;
}

inline Ints multiply_pairs(Ints a, Ints b) {
  for (int lane = 0; lane < kLanes; ++lane)
    a[lane] = (int16_t)a[lane] * (int16_t)b[lane] + (a[lane] >> 16) * (b[lane] >> 16);
  return a;
}

#endif

#if defined(__AVX512BF16__)
// Adds to each lane of `sums` the products of two pairs of bf16 numbers.
inline Floats add_bf16_products(Floats sums, Ints a, Ints b) {
  return _mm512_dpbf16_ps(sums, (__m512bh)a, (__m512bh)b);
}
#endif

#if defined(__AVX512VNNI__)
// Adds to each lane of `sums` the products of four unsigned and four signed bytes.
inline Ints add_byte_products(Ints sums, Ints without_sign, Ints with_sign) {
  return (Ints)_mm512_dpbusd_epi32((__m512i)sums, (__m512i)without_sign, (__m512i)with_sign);
}
#endif

// Stores the low 2 or 4 bytes of each lane.
template <int kBytes>
inline void store_parts(void* to, Ints lanes) {
  if constexpr (kBytes == 4) {
    std::memcpy(to, &lanes, sizeof lanes);
  } else {
    typedef uint16_t Halves __attribute__((vector_size(kLanes * 2)));
    static_assert(kBytes == 2);
    const Halves halves = __builtin_convertvector(lanes, Halves);
    std::memcpy(to, &halves, sizeof halves);
  }
}

// Swaps rows and columns: at each step, blocks of `size` by `size` numbers.
inline void transpose(Floats (&square)[kLanes]) {
  for (int size = 1; size < kLanes; size *= 2) {
    Ints low, high;
    for (int lane = 0; lane < kLanes; ++lane) {
      low[lane] = lane & size ? kLanes + lane - size : lane;
      high[lane] = lane & size ? kLanes + lane : lane + size;
    }
    for (int row = 0; row < kLanes; ++row) {
      if (row & size) continue;
      const Floats a = square[row], b = square[row + size];
      square[row] = __builtin_shuffle(a, b, low);
      square[row + size] = __builtin_shuffle(a, b, high);
    }
  }
}

inline Floats absolute(Floats x) { return (Floats)((Ints)x & 0x7fffffff); }

// Written so that NaN stays NaN.
inline Floats clip(Floats x, Floats bound) {
  x = x > bound ? bound : x;
  return x < -bound ? -bound : x;
}

// exp(x) is `scale` times (1 + `power_minus_one`), for -87 <= x <= 0.
struct Power {
  Floats scale, power_minus_one;
};

inline Power split_exp(Floats x) {
  // x = n * log(2) + r with |r| <= log(2) / 2. Adding and subtracting 1.5 * 2^23 rounds to an
  // integer.
  const Floats rounder = fill(12582912.0f);
  const Floats n = fused(x, fill(1.44269504f), rounder) - rounder;
  Floats r = fused(n, fill(-0.693145752f), x);  // log(2) in two parts, the first with few bits
  r = fused(n, fill(-1.42860677e-6f), r);
  Floats series = fill(1.0f / 5040);
  series = fused(series, r, fill(1.0f / 720));
  series = fused(series, r, fill(1.0f / 120));
  series = fused(series, r, fill(1.0f / 24));
  series = fused(series, r, fill(1.0f / 6));
  series = fused(series, r, fill(0.5f));
  const Floats scale = (Floats)((__builtin_convertvector(n, Ints) + 127) << 23);  // 2^n
  return {scale, fused(series * r, r, r)};
}

// exp(x) - 1 for -32 <= x <= 0, to about one unit in the last place.
inline Floats exp_minus_one(Floats x) {
  const Power power = split_exp(x);
  return fused(power.scale, power.power_minus_one, power.scale - 1.0f);
}

// exp(x) for x <= 0, to about one unit in the last place; 0 below -87.
inline Floats exp(Floats x) {
  const Power power = split_exp(x < -87.0f ? fill(-87.0f) : x);
  return x < -87.0f ? fill(0.0f) : fused(power.scale, power.power_minus_one, power.scale);
}

inline Floats tanh(Floats x) {
  Floats doubled = absolute(x) * -2.0f;
  doubled = doubled < -32.0f ? fill(-32.0f) : doubled;  // beyond that, the result is 1 anyway
  const Floats e = exp_minus_one(doubled);
  const Floats magnitude = -e / (e + 2.0f);
  const Ints sign = (Ints)x & INT32_MIN;
  return (Floats)((Ints)magnitude | sign);
}

inline Floats sigmoid(Floats x) { return fused(tanh(x * 0.5f), fill(0.5f), fill(0.5f)); }

}  // namespace elmore
