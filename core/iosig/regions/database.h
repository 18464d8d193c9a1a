// SQLite behind results: one connection, prepared statements, errors with file and step. Internal to regions/.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "iosig/base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace iosig::regions {

class Database;

/// A prepared statement of a database, which must outlive it and stay in its place. Parameters count from 1, columns
/// from 0, as in SQLite. The texts that it returns are valid until the next step.
class Statement {
 public:
  Statement& bind(int parameter, std::uint64_t number);
  Statement& bind(int parameter, std::string_view text);
  Statement& bind_bytes(int parameter, std::string_view bytes);
  /// Returns whether there is a row. Fails as Database does.
  [[nodiscard]] Result<bool> step();
  /// Runs a statement that returns no rows, and makes it ready for the next parameters.
  [[nodiscard]] Result<void> run();

  [[nodiscard]] std::uint64_t number(int column) const;
  [[nodiscard]] std::string_view text(int column) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  Statement(const Database& database, sqlite3_stmt* statement) : database_(&database), statement_(statement) {}
  const Database* database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

/// Whether a missing file is an error or is created.
enum class IfMissing { fail, create };

/// An open database file. Fails with `bad_input` if SQLite finds the file damaged or it is no database, `infeasible` if
/// there is no space, otherwise `system`.
class Database {
 public:
  /// Rolls back what an interrupted writer left, which needs a writable file.
  /// Another process that writes is waited for, up to 10 s.
  [[nodiscard]] static Result<Database> open(const std::string& path, IfMissing if_missing);

  [[nodiscard]] Result<Statement> prepare(std::string_view sql) const;
  [[nodiscard]] Result<void> run(std::string_view sql) const;
  /// Returns the number that `sql` selects.
  [[nodiscard]] Result<std::uint64_t> number(std::string_view sql) const;
  /// Makes the error for SQLite's `code`.
  [[nodiscard]] tl::unexpected<Error> failure(int code, std::string_view doing) const;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  Database(std::string path, sqlite3* database) : path_(std::move(path)), database_(database) {}
  std::string path_;
  std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace iosig::regions
