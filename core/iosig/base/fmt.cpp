// fmt, compiled once: its headers alone would cost every source file seconds, and the shared library must not be pulled
// into the hosts of libiosig and the plugin. The instantiations are those that fmt's own library exports.
#include <fmt/format-inl.h>

#include <locale>

namespace fmt::detail {
template dragonbox::decimal_fp<float> dragonbox::to_decimal(float) noexcept;
template dragonbox::decimal_fp<double> dragonbox::to_decimal(double) noexcept;
template locale_ref::locale_ref(const std::locale&);
template std::locale locale_ref::get<std::locale>() const;
template thousands_sep_result<char> thousands_sep_impl(locale_ref);
template char decimal_point_impl(locale_ref);
template void buffer<char>::append(const char*, const char*);
template void vformat_to(buffer<char>&, string_view, fmt::format_args, locale_ref);
}  // namespace fmt::detail
