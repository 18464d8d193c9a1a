// Writes fields of protobuf messages (https://protobuf.dev/programming-guides/encoding), for messages whose fields we
// know by number.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace iosig::trace::protobuf {

inline void append_varint(std::uint64_t number, std::string& bytes) {
  constexpr std::uint64_t more = 0x80;
  for (; number >= more; number >>= 7U) bytes += static_cast<char>(number | more);
  bytes += static_cast<char>(number);
}

enum class Wire : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2 };

inline void append_key(std::uint32_t field, Wire wire, std::string& bytes) {
  append_varint(std::uint64_t{field} << 3U | static_cast<std::uint64_t>(wire), bytes);
}
inline void append_number(std::uint32_t field, std::uint64_t number, std::string& bytes) {
  append_key(field, Wire::varint, bytes);
  append_varint(number, bytes);
}
/// int32, int64: negative ones take ten bytes.
inline void append_signed(std::uint32_t field, std::int64_t number, std::string& bytes) {
  append_number(field, static_cast<std::uint64_t>(number), bytes);
}
inline void append_fixed64(std::uint32_t field, std::uint64_t number, std::string& bytes) {
  append_key(field, Wire::fixed64, bytes);
  for (unsigned shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(number >> shift);
}
/// A string, or a message within the message.
inline void append_bytes(std::uint32_t field, std::string_view content, std::string& bytes) {
  append_key(field, Wire::bytes, bytes);
  append_varint(content.size(), bytes);
  bytes += content;
}

}  // namespace iosig::trace::protobuf
