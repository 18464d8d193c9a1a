#include "iosig/base/crc32c.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#ifdef __x86_64__
#include <immintrin.h>
#endif
#if defined(__x86_64__) && !defined(__clang__) && __has_include(<sys/platform/x86.h>)  // it is C that GCC takes as C++
#include <sys/platform/x86.h>
#endif

namespace iosig {
namespace {

constexpr std::array<std::uint32_t, 256> table = [] {
  std::array<std::uint32_t, 256> steps{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t step = byte;
    for (int bit = 0; bit < 8; ++bit) step = (step >> 1) ^ ((step & 1) != 0 ? 0x82f63b78u : 0u);
    steps[byte] = step;
  }
  return steps;
}();

std::uint32_t by_table(std::span<const std::uint8_t> bytes, std::uint32_t crc) {
  for (const std::uint8_t byte : bytes) crc = (crc >> 8) ^ table[(crc ^ byte) & 0xff];
  return crc;
}

// A checksum is a polynomial over GF(2) modulo that of Castagnoli; bit 31 is the coefficient of x^0. Bytes that follow
// multiply it by x^8 each.

constexpr std::uint32_t product(std::uint32_t a, std::uint32_t b) {
  std::uint32_t sum = 0;
  for (; a != 0; a <<= 1) {
    if ((a & 0x80000000u) != 0) sum ^= b;
    b = (b >> 1) ^ ((b & 1) != 0 ? 0x82f63b78u : 0u);  // times x
  }
  return sum;
}

/// Returns x^(8 bytes).
constexpr std::uint32_t shift_by(std::uint64_t bytes) {
  std::uint32_t power = 0x80000000u, square = 0x00800000u;  // 1, x^8
  for (; bytes != 0; bytes >>= 1, square = product(square, square))
    if ((bytes & 1) != 0) power = product(power, square);
  return power;
}

#ifdef __x86_64__
/// With the processor's instruction for this checksum: 8 bytes in 3 cycles.
__attribute__((target("sse4.2"))) std::uint32_t by_instruction(std::span<const std::uint8_t> bytes, std::uint32_t crc) {
  std::uint64_t word = 0, state = crc;
  for (; bytes.size() >= sizeof word; bytes = bytes.subspan(sizeof word)) {
    std::memcpy(&word, bytes.data(), sizeof word);
    state = _mm_crc32_u64(state, word);
  }
  crc = static_cast<std::uint32_t>(state);
  for (const std::uint8_t byte : bytes) crc = _mm_crc32_u8(crc, byte);
  return crc;
}

/// Three parts of `part` bytes each at the same time: an instruction takes three cycles, but one can begin in each.
template <std::size_t part>
__attribute__((target("sse4.2"))) std::uint32_t three_parts(const std::uint8_t* bytes, std::uint32_t crc) {
  constexpr std::uint32_t by_one = shift_by(part), by_two = shift_by(2 * part);
  std::uint64_t first = crc, second = 0, third = 0;
  for (std::size_t at = 0; at < part; at += sizeof(std::uint64_t)) {
    std::uint64_t words[3];
    for (std::size_t n = 0; n < 3; ++n) std::memcpy(&words[n], bytes + at + n * part, sizeof words[n]);
    first = _mm_crc32_u64(first, words[0]);
    second = _mm_crc32_u64(second, words[1]);
    third = _mm_crc32_u64(third, words[2]);
  }
  return product(by_two, static_cast<std::uint32_t>(first)) ^ product(by_one, static_cast<std::uint32_t>(second)) ^
         static_cast<std::uint32_t>(third);
}

std::uint32_t by_parts(std::span<const std::uint8_t> bytes, std::uint32_t crc) {
  constexpr std::size_t many = 4096, some = 512;
  for (; bytes.size() >= 3 * many; bytes = bytes.subspan(3 * many)) crc = three_parts<many>(bytes.data(), crc);
  for (; bytes.size() >= 3 * some; bytes = bytes.subspan(3 * some)) crc = three_parts<some>(bytes.data(), crc);
  return by_instruction(bytes, crc);
}

// Folding (Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel 2009): 16
// bytes that are multiplied by x^(8 distance) modulo the polynomial may be added to those `distance` bytes behind them.
// The first half is the one with the greater powers. Products of reflected polynomials are short of one bit.

constexpr std::size_t fold_bytes = 128;  ///< 4 registers with 2 x 16 bytes each

template <std::size_t distance>
__attribute__((target("avx2,vpclmulqdq"))) __m256i folded(__m256i bytes, __m256i onto) {
  constexpr long long first = 2LL * shift_by(distance + 4), second = 2LL * shift_by(distance - 4);
  const __m256i powers = _mm256_set_epi64x(second, first, second, first);
  return _mm256_xor_si256(onto, _mm256_xor_si256(_mm256_clmulepi64_epi128(bytes, powers, 0x00),
                                                 _mm256_clmulepi64_epi128(bytes, powers, 0x11)));
}

__attribute__((target("avx2,vpclmulqdq,sse4.2"))) std::uint32_t by_folding(std::span<const std::uint8_t> bytes,
                                                                           std::uint32_t crc) {
  if (bytes.size() < fold_bytes) return by_instruction(bytes, crc);
  const auto load = [&](std::size_t n) __attribute__((target("avx2"))) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes.data()) + n);
  };
  __m256i sums[4] = {load(0), load(1), load(2), load(3)};
  sums[0] = _mm256_xor_si256(sums[0], _mm256_set_epi64x(0, 0, 0, crc));
  for (bytes = bytes.subspan(fold_bytes); bytes.size() >= fold_bytes; bytes = bytes.subspan(fold_bytes))
    for (std::size_t n = 0; n < 4; ++n) sums[n] = folded<fold_bytes>(sums[n], load(n));
  for (std::size_t n = 1; n < 4; ++n) sums[n] = folded<sizeof(__m256i)>(sums[n - 1], sums[n]);
  std::uint64_t words[4];
  std::memcpy(words, &sums[3], sizeof words);
  std::uint64_t state = 0;
  for (const std::uint64_t word : words) state = _mm_crc32_u64(state, word);
  return by_instruction(bytes, static_cast<std::uint32_t>(state));
}

#endif

/// The ways that this processor has, the fastest first; null behind them.
std::array<Crc32cWay, 3> possible_ways() {
  std::array<Crc32cWay, 3> ways{};
  std::size_t count = 0;
#ifdef __x86_64__
#ifdef CPU_FEATURE_ACTIVE  // the C library's knowledge: each start of a process with GCC's costs 60 us on a virtual
                           // machine
  const bool has_crc = CPU_FEATURE_ACTIVE(SSE4_2);
  const bool folds = has_crc && CPU_FEATURE_ACTIVE(AVX2) && CPU_FEATURE_ACTIVE(VPCLMULQDQ);
#else
  const bool has_crc = __builtin_cpu_supports("sse4.2");
  const bool folds = has_crc && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("vpclmulqdq");
#endif
  if (folds) ways[count++] = by_folding;
  if (has_crc) ways[count++] = by_parts;
#endif
  ways[count] = by_table;
  return ways;
}

}  // namespace

std::vector<Crc32cWay> crc32c_ways() {
  const auto ways = possible_ways();
  return {ways.begin(), std::ranges::find(ways, nullptr)};
}

std::uint32_t crc32c(std::span<const std::uint8_t> bytes, std::uint32_t before) {
  // No guarded static: a signal handler that packs would wait for the thread that it has interrupted.
  static constinit std::atomic<Crc32cWay> fastest{nullptr};
  Crc32cWay way = fastest.load(std::memory_order_relaxed);
  if (way == nullptr) fastest.store(way = possible_ways().front(), std::memory_order_relaxed);
  return ~way(bytes, ~before);
}

std::uint32_t joined_crc32c(std::uint32_t first, std::uint32_t second, std::uint64_t second_bytes) {
  return product(shift_by(second_bytes), first) ^ second;
}

}  // namespace iosig
