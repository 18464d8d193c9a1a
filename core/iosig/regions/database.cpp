#include "iosig/regions/database.h"

#include <sqlite3.h>
#include <sys/stat.h>

#include "iosig/base/text.h"

namespace iosig::regions {
namespace {

constexpr int busy_ms = 10'000;
constexpr int max_value_bytes = 1 << 20;  ///< of one text or blob: no file makes the reader allocate more

/// Nothing in the file is code: no trigger or view of a stranger runs, and a damaged page is noticed.
constexpr const char* careful =
    "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY; "
    // A deleted journal ends a transaction. A write-ahead log would need shared memory, which network file systems
    // lack.
    "PRAGMA synchronous = EXTRA;";

/// A path that SQLite takes neither for a URI nor for one of its own names such as ":memory:".
std::string plain_path(const std::string& path) { return path.starts_with('/') ? path : "./" + path; }

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { ::sqlite3_finalize(statement); }
void Database::Close::operator()(sqlite3* database) const { ::sqlite3_close(database); }

Statement& Statement::bind(int parameter, std::uint64_t number) {
  ::sqlite3_bind_int64(statement_.get(), parameter, static_cast<sqlite3_int64>(number));
  return *this;
}

Statement& Statement::bind(int parameter, std::string_view text) {
  ::sqlite3_bind_text64(statement_.get(), parameter, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  return *this;
}

Statement& Statement::bind_bytes(int parameter, std::string_view bytes) {
  ::sqlite3_bind_blob64(statement_.get(), parameter, bytes.data(), bytes.size(), SQLITE_TRANSIENT);
  return *this;
}

Result<bool> Statement::step() {
  const int code = ::sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return database_->failure(code, ::sqlite3_sql(statement_.get()));
}

Result<void> Statement::run() {
  const auto stepped = step();
  ::sqlite3_reset(statement_.get());
  if (!stepped) return pass_on(stepped.error());
  return {};
}

std::uint64_t Statement::number(int column) const {
  return static_cast<std::uint64_t>(::sqlite3_column_int64(statement_.get(), column));
}

std::string_view Statement::text(int column) const {
  const void* const bytes = ::sqlite3_column_blob(statement_.get(), column);
  const int size = ::sqlite3_column_bytes(statement_.get(), column);
  return bytes == nullptr ? std::string_view{} : std::string_view(static_cast<const char*>(bytes), std::size_t(size));
}

Result<Database> Database::open(const std::string& path, IfMissing if_missing) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
    return fail(ErrorKind::system, "'{}': is no regular file; expected a region map, or a name that is free",
                printable(path));
  sqlite3* handle = nullptr;
  const int how = SQLITE_OPEN_READWRITE | (if_missing == IfMissing::create ? SQLITE_OPEN_CREATE : 0);
  const int code = ::sqlite3_open_v2(plain_path(path).c_str(), &handle, how | SQLITE_OPEN_NOMUTEX, nullptr);
  Database database(path, handle);
  if (handle == nullptr) return fail(ErrorKind::system, "'{}': no memory for SQLite", printable(path));
  if (code != SQLITE_OK) return database.failure(code, "open");
  ::sqlite3_extended_result_codes(handle, 1);
  ::sqlite3_busy_timeout(handle, busy_ms);
  ::sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, max_value_bytes);
  ::sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  if (const auto set = database.run(careful); !set) return pass_on(set.error());
  return database;
}

Result<Statement> Database::prepare(std::string_view sql) const {
  sqlite3_stmt* statement = nullptr;
  const int code = ::sqlite3_prepare_v2(database_.get(), sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
  if (code != SQLITE_OK) return failure(code, sql);
  return Statement(*this, statement);
}

Result<void> Database::run(std::string_view sql) const {
  const int code = ::sqlite3_exec(database_.get(), std::string(sql).c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return failure(code, sql);
  return {};
}

Result<std::uint64_t> Database::number(std::string_view sql) const {
  auto statement = prepare(sql);
  if (!statement) return pass_on(statement.error());
  const auto has_row = statement->step();
  if (!has_row) return pass_on(has_row.error());
  return *has_row ? statement->number(0) : 0;
}

tl::unexpected<Error> Database::failure(int code, std::string_view doing) const {
  const std::string said = ::sqlite3_errmsg(database_.get());
  const std::string_view step = cut_to(doing, 60);
  switch (code & 0xff) {  // the primary code; the rest is detail
    case SQLITE_NOTADB: return fail(ErrorKind::bad_input, "'{}': is no region map: {}", printable(path_), said);
    case SQLITE_CORRUPT:
    case SQLITE_ERROR:  // of fixed statements: the file's tables are not those that they expect
    case SQLITE_TOOBIG:
    case SQLITE_MISMATCH:
    case SQLITE_CONSTRAINT:
      return fail(ErrorKind::bad_input,
                  "'{}': the region map is damaged: {} (in: {}); delete it and make it again with 'iosig plan --map'",
                  printable(path_), said, printable(step));
    case SQLITE_FULL: return fail(ErrorKind::infeasible, "'{}': no space for the region map", printable(path_));
    case SQLITE_READONLY:
      return fail(ErrorKind::system,
                  "'{}': is read-only, and it must be written: either now, or to undo what an interrupted writer left; "
                  "run the command once as its owner",
                  printable(path_));
    case SQLITE_CANTOPEN:
      return fail(ErrorKind::system,
                  "'{}': the region map cannot be opened: there is no such file or directory, or no permission",
                  printable(path_));
    case SQLITE_BUSY:
      return fail(ErrorKind::system, "'{}': another process is writing the region map; try again", printable(path_));
    default:
      return fail_with_errno(::sqlite3_system_errno(database_.get()), ErrorKind::system, "'{}': {} (in: {})",
                             printable(path_), said, printable(step));
  }
}

}  // namespace iosig::regions
