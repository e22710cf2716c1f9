// Rows that are equal to the bit, found by a hash of their numbers.
#pragma once

#include <cstdint>
#include <cstring>
#include <unordered_map>
#include <vector>

namespace elmore {

struct Distinct {
  std::vector<int64_t> rows;     // the first of each kind
  std::vector<int32_t> indices;  // of each row, among the kinds
};

// A sample of the numbers is enough, because rows with equal hashes are compared in full.
inline uint64_t hash_row(const float* row, int64_t width) {
  constexpr int64_t kSample = 32;
  const int64_t step = width / kSample + 1;
  uint64_t hash = 0;
  for (int64_t i = 0; i < width; i += step) {
    uint32_t bits;
    std::memcpy(&bits, row + i, 4);
    hash = (hash ^ bits) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 29;
  }
  return hash;
}

// `row_at(n)` returns row n.
template <class RowAt>
Distinct find_distinct(int64_t num_rows, int64_t width, RowAt row_at) {
  Distinct found;
  found.indices.resize(num_rows);
  std::unordered_multimap<uint64_t, int32_t> kinds;
  kinds.reserve(num_rows);
  for (int64_t n = 0; n < num_rows; ++n) {
    const uint64_t hash = hash_row(row_at(n), width);
    const auto [first, last] = kinds.equal_range(hash);
    auto kind = first;
    while (kind != last &&
           std::memcmp(row_at(found.rows[kind->second]), row_at(n), width * sizeof(float)) != 0)
      ++kind;
    if (kind == last) {
      kind = kinds.emplace(hash, (int32_t)found.rows.size());
      found.rows.push_back(n);
    }
    found.indices[n] = kind->second;
  }
  return found;
}

}  // namespace elmore
