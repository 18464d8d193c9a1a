#pragma once

#include <cstddef>
#include <span>
#include <string>

inline std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }
