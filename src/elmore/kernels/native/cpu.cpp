// Detects CPU features. Built without the kernels' flags, so that it runs on any x86.

#include <cpuid.h>

#include <cstdint>

namespace {

// f16 conversions. Every known CPU with AVX2 has them; compilers learned their name late.
bool has_f16c() {
  unsigned int a, b, c, d;
  return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

}  // namespace

enum Feature : int32_t { kAVX2 = 1, kAVX512 = 2, kVNNI = 4, kBF16 = 8 };

extern "C" __attribute__((visibility("default"))) int32_t elmore_cpu_features() {
  __builtin_cpu_init();
  int32_t features = 0;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c())
    features |= kAVX2;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    features |= kAVX512;
  if (__builtin_cpu_supports("avx512vnni")) features |= kVNNI;
  if (__builtin_cpu_supports("avx512bf16")) features |= kBF16;
  return features;
}
