// Where large tables of variables lie.
#pragma once

/// Puts a variable behind all others, so that those share few pages: a short program pays for each page that its
/// libraries touch.
#define IOSIG_TABLE [[gnu::section(".lbss.tables")]]
