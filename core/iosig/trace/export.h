// Accesses as text: one line for each, for other programs.
#pragma once

#include <string>
#include <string_view>

#include "iosig/trace/trace.h"

namespace iosig::trace {

/// The fields of an access, in the order of every output.
inline constexpr std::string_view csv_header =
    "id,parent,host,pid,tid,rank,layer,call,path,fd,offset,length,start_ns,end_ns,result,second_path\n";

/// Appends the access as a line of CSV (RFC 4180, but with "\n"). Fields that the call has not are empty. A path with a
/// comma, quote or line end is quoted; its bytes are as they are, even if they are not UTF-8.
void append_csv(const Access& access, std::string& text);

}  // namespace iosig::trace
