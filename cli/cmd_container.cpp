// `iosig container`: inspects, checks and repairs containers, and converts them to ordinary files.

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/container/admin/container.h"
#include "iosig/container/admin/flatten.h"
#include "iosig/container/admin/manifest_rescue.h"
#include "iosig/container/admin/removal.h"
#include "iosig/container/admin/repair.h"
#include "iosig/container/admin/upgrade.h"
#include "iosig/container/read/container_view.h"
#include "iosig/container/read/merge_indices.h"
#include "iosig/format/pattern_binary.h"
#include "iosig/format/pattern_json.h"
#include "iosig/format/pattern_text.h"

namespace iosig::cli {
namespace {

using nlohmann::ordered_json;

constexpr const char* container_help = "a container";
constexpr std::int64_t progress_bytes = 64 << 20;  ///< bytes copied between two progress reports

struct ContainerArguments {
  std::string path, to, index = "pattern";
  std::vector<std::string> targets, paths;
  std::uint32_t subdirectories = 16;
  bool dry_run = false, damaged = false, claim = false, data = false;
};

/// A view that holds its container: if the container is removed meanwhile, its data stay until the view is closed.
struct HeldView {
  ContainerHold hold;
  std::unique_ptr<ContainerView> view;
  ContainerView* operator->() const { return view.get(); }
  ContainerView& operator*() const { return *view; }
};

Result<HeldView> open_view(const std::string& path, ContainerView::Source source = ContainerView::Source::droppings) {
  auto directory = ContainerDirectory::open(path);
  if (!directory) return pass_on(std::move(directory.error()));
  auto hold = ContainerHold::take(**directory);
  if (!hold) return pass_on(std::move(hold.error()));
  auto view = ContainerView::open(*std::move(directory), source);
  if (!view) return pass_on(std::move(view.error()));
  return HeldView{*std::move(hold), *std::move(view)};
}

std::string_view name_of(ContainerProblem::Kind kind) {
  return kind == ContainerProblem::Kind::lost       ? "lost"
         : kind == ContainerProblem::Kind::damaged  ? "damaged"
         : kind == ContainerProblem::Kind::unsynced ? "unsynced"
         : kind == ContainerProblem::Kind::absent   ? "absent"
                                                    : "foreign";
}

int run_create(const ContainerArguments& options, Console& console) {
  ContainerOptions wanted;
  wanted.index = options.index == iosig::name_of(IndexKind::pattern) ? IndexKind::pattern : IndexKind::traditional;
  wanted.subdirectories = options.subdirectories;
  wanted.targets = options.targets;
  const auto made = create_container(options.path, wanted);
  return made ? static_cast<int>(yes) : console.fail(made.error());
}

bool is_lost(const ContainerProblem& problem) { return problem.kind == ContainerProblem::Kind::lost; }

int run_ls(const ContainerArguments& options, Console& console) {
  const auto view = open_view(options.path);
  if (!view) return console.fail(view.error());
  const ContainerContent& content = (*view)->content();
  const ContainerManifest& manifest = (*view)->directory().manifest();
  const bool is_damaged = std::ranges::any_of(content.problems, is_lost);
  ordered_json writers = ordered_json::array();
  Table table({"ID", "DATA", "INDEX", "NOT YET INDEXED", "HOST", "PID", "PLACE"});
  for (const WriterContent& writer : content.writers) {
    const std::string place = (*view)->directory().shown(Dropping::data, writer.id);
    writers.push_back({{"id", writer.id},
                       {"data", place},
                       {"data_bytes", writer.data_bytes < 0 ? ordered_json() : ordered_json(writer.data_bytes)},
                       {"index_bytes", writer.index_bytes},
                       {"tail_writes", writer.tail_writes},
                       {"is_closed", !writer.has_tail},
                       {"host", printable(writer.head.host)},
                       {"pid", writer.head.pid},
                       {"created_unix_ns", writer.head.created_unix_ns}});
    table.add({fmt::format("{}", writer.id),
               writer.data_bytes < 0 ? "missing" : about_bytes(static_cast<double>(writer.data_bytes)),
               about_bytes(static_cast<double>(writer.index_bytes)),
               writer.has_tail ? fmt::format("{} writes", writer.tail_writes) : "", printable(writer.head.host),
               fmt::format("{}", writer.head.pid), printable(place)});
  }
  if (console.json) {
    console.say_json("iosig.container-list/1", {{"path", printable(options.path)},
                                                {"id", manifest.id},
                                                {"index", iosig::name_of(manifest.index)},
                                                {"size", (*view)->size()},
                                                {"memory_bytes", (*view)->memory_bytes()},
                                                {"damaged", is_damaged},
                                                {"problems", content.problems.size()},
                                                {"writers", std::move(writers)}});
  } else {
    console.say(fmt::format("{} bytes by {} writer{}, {} index{}", (*view)->size(), content.writers.size(),
                            content.writers.size() == 1 ? "" : "s", iosig::name_of(manifest.index),
                            is_damaged ? "; damaged: bytes are lost; only the rest is listed" : ""));
    if (!content.writers.empty()) console.say(table);
  }
  if (!content.problems.empty())
    console.note(fmt::format("{} problem{}, which iosig container check {} names", content.problems.size(),
                             content.problems.size() == 1 ? "" : "s", printable(options.path)));
  return is_damaged ? no : yes;
}

/// Returns how many entries of the merged pattern are not writes but holes of truncations and punches.
std::uint64_t holes_in(const ContainerContent& content) {
  std::uint64_t holes = 0;
  for (const WriterContent& writer : content.writers)
    holes += static_cast<std::uint64_t>(std::ranges::count_if(
        writer.marks, [](const IndexMark& mark) { return mark.kind != IndexMark::Kind::extend; }));
  return holes;
}

/// Returns "2001 writes", or "2000 writes and 1 truncation or hole".
std::string counted(std::uint64_t all, std::uint64_t holes) {
  const std::uint64_t writes = all - std::min(all, holes);
  std::string text = fmt::format("{} write{}", writes, writes == 1 ? "" : "s");
  if (holes > 0)
    text += fmt::format(" and {} truncation{} or hole{}", holes, holes == 1 ? "" : "s", holes == 1 ? "" : "s");
  return text;
}

/// Marks the holes in a pattern's text as such.
std::string with_named_holes(const std::string& text) {
  const std::string hole_suffix = fmt::format(", physical 0, id {}", hole_id);
  std::string named;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    if (line.ends_with(hole_suffix)) {
      line.resize(line.size() - hole_suffix.size());
      line += ": not a write, but a truncation or a hole";
    }
    named += (at == 0 ? "" : "\n") + line;
    at = end + 1;
  }
  return named;
}

int run_index(const ContainerArguments& options, Console& console) {
  const auto view = open_view(options.path);
  if (!view) return console.fail(view.error());
  if ((*view)->directory().manifest().index == IndexKind::traditional)
    return console.fail({ErrorKind::infeasible, fmt::format("'{}' has a traditional index: an entry for each write, no "
                                                            "pattern",
                                                            printable(options.path))});
  const Pattern& pattern = (*view)->pattern();
  if (console.json) {
    console.say_json(pattern_schema, pattern_json(pattern));
    return yes;
  }
  console.say(fmt::format("{} as {} term{}: {} bytes", counted(pattern.count(), holes_in((*view)->content())),
                          pattern.terms.size(), pattern.terms.size() == 1 ? "" : "s", pattern_bytes(pattern).size()));
  if (pattern.count() > 0) console.say(with_named_holes(pattern_text(pattern, column_names(pattern))));
  return yes;
}

/// Returns a function that reports the progress of work on `size` bytes; 0: the size is unknown.
std::function<void(std::int64_t)> reporting(const char* what, std::int64_t size, Console& console) {
  return [=, &console, last = std::int64_t{0}](std::int64_t done) mutable {
    if (done - last < progress_bytes) return;
    last = done;
    console.progress({what, static_cast<double>(done), static_cast<double>(size)});
  };
}

int run_container_check(const ContainerArguments& options, Console& console) {
  const auto directory = ContainerDirectory::open(options.path);
  if (!directory) return console.fail(directory.error());
  const auto hold = ContainerHold::take(**directory);
  if (!hold) return console.fail(hold.error());
  const auto check = check_container(*directory, {options.data, reporting("verifying", 0, console)});
  console.end_progress();
  if (!check) return console.fail(check.error());
  for (const std::string& left : hidden_beside(options.path))
    console.note(
        fmt::format("'{}' is left from an interrupted creation, removal or copy, unless that is still running; "
                    "it is not part of the container. iosig gc {} deletes leftovers of removals that are not open",
                    printable(left), printable(split_path(options.path).directory)));
  const bool is_sound = std::ranges::all_of(check->problems, [](const ContainerProblem& problem) {
    return problem.kind == ContainerProblem::Kind::unsynced;
  });
  if (console.json) {
    ordered_json problems = ordered_json::array(), lost = ordered_json::array();
    for (const ContainerProblem& problem : check->problems)
      problems.push_back({{"kind", name_of(problem.kind)},
                          {"id", problem.id < 0 ? ordered_json() : ordered_json(problem.id)},
                          {"bytes", problem.bytes},
                          {"message", problem.message}});
    for (const LostRange& range : check->lost) lost.push_back({{"offset", range.offset}, {"length", range.length}});
    ordered_json document = {{"sound", is_sound},
                             {"size", check->size},
                             {"lost_bytes", check->lost_bytes},
                             {"lost", std::move(lost)},
                             {"problems", std::move(problems)}};
    if (check->data)
      document["data"] = {{"verified_bytes", check->data->verified_bytes},
                          {"unverified_bytes", check->data->unverified_bytes}};
    console.say_json("iosig.container-check/1", document);
    return is_sound ? yes : no;
  }
  for (const ContainerProblem& problem : check->problems)
    console.say(fmt::format("{}: {}", name_of(problem.kind), problem.message));
  for (const LostRange& range : check->lost)
    console.say(fmt::format("lost: bytes {} to {} of the file", range.offset, range.offset + range.length));
  if (!check->lost.empty())
    console.say(fmt::format("lost: {} of {} bytes of the file in all", check->lost_bytes, check->size));
  if (check->data && check->data->unverified_bytes > 0)
    console.note(fmt::format(
        "{} of {} bytes of data have no checksum: their writers are active, were killed, or are of an earlier IOSIG",
        check->data->unverified_bytes, check->data->unverified_bytes + check->data->verified_bytes));
  if (check->problems.empty()) console.say("sound");
  return is_sound ? yes : no;
}

/// The first step for a container that has lost its manifest.
Result<std::vector<RepairStep>> repair_manifest(const ContainerArguments& options) {
  const auto rescued = rescue_manifest(options.path, options.targets);
  if (!rescued) return pass_on(rescued.error());
  if (!*rescued) return std::vector<RepairStep>{};
  if (!options.dry_run)
    if (auto put = put_manifest(options.path, (*rescued)->manifest); !put) return pass_on(std::move(put.error()));
  return std::vector<RepairStep>{{fmt::format("rebuilt its manifest from {}: {} index, {} subdirectories, mode {:o}",
                                              (*rescued)->from, iosig::name_of((*rescued)->manifest.index),
                                              (*rescued)->manifest.subdirectories, (*rescued)->manifest.mode)}};
}

int run_repair(const ContainerArguments& options, Console& console) {
  auto steps = repair_manifest(options);
  if (!steps) return console.fail(steps.error());
  if (steps->empty() || !options.dry_run) {  // further steps can only be found if there is a manifest
    const auto directory = ContainerDirectory::open(options.path);
    if (!directory) return console.fail(directory.error());
    const auto hold = ContainerHold::take(**directory);
    if (!hold) return console.fail(hold.error());
    const auto more = repair_container(*directory, {options.dry_run, options.claim});
    if (!more) return console.fail(more.error());
    steps->insert(steps->end(), more->begin(), more->end());
  }
  ordered_json done = ordered_json::array();
  for (const RepairStep& step : *steps) {
    done.push_back(step.done);
    if (!console.json) console.say(fmt::format("{}{}", options.dry_run ? "would have " : "", step.done));
  }
  if (console.json)
    console.say_json("iosig.container-repair/1", {{"dry_run", options.dry_run}, {"steps", std::move(done)}});
  else if (steps->empty())
    console.say("nothing to repair");
  return yes;
}

/// Returns options that report the progress of copying `size` bytes; 0: the size is unknown.
FlattenOptions copying(const ContainerArguments& options, std::int64_t size, Console& console) {
  return {options.dry_run, options.damaged, reporting("copying", size, console), reporting("verifying", 0, console)};
}

/// Reports a complete copy of `size` bytes.
int say_copied(const ContainerArguments& options, const std::string& file, std::int64_t size, std::string_view what,
               Console& console) {
  console.end_progress();
  if (console.json)
    console.say_json("iosig.container-copy/1",
                     {{"dry_run", options.dry_run}, {"path", options.path}, {"file", file}, {"size", size}});
  else
    console.say(fmt::format("'{}': {}{}, {}", printable(file), options.dry_run ? "would be " : "", what,
                            about_bytes(static_cast<double>(size))));
  return yes;
}

int run_flatten(const ContainerArguments& options, Console& console) {
  // The size is not read first: flatten_container() needs the container exclusively, so it must not be open here.
  const auto size = flatten_container(options.path, copying(options, 0, console));
  if (size) return say_copied(options, options.path, *size, "an ordinary file now", console);
  console.end_progress();
  return console.fail(size.error());
}

int run_export(const ContainerArguments& options, Console& console) {
  // The index snapshot may still have writes that the writers' own indices have lost since.
  const auto view =
      open_view(options.path, options.damaged ? ContainerView::Source::droppings : ContainerView::Source::snapshot);
  if (!view) return console.fail(view.error());
  const auto lost_bytes = export_container(**view, options.to, copying(options, (*view)->size(), console));
  console.end_progress();
  if (!lost_bytes) return console.fail(lost_bytes.error());
  if (options.damaged)
    for (const ContainerProblem& problem : (*view)->problems())
      if (problem.kind == ContainerProblem::Kind::lost) console.note(fmt::format("lost: {}", problem.message));
  if (options.damaged && !options.dry_run)
    if (const auto data = check_data((*view)->directory(), (*view)->content()))
      for (const ChangedData& changed : data->changed)
        console.note(fmt::format("{}; they are written as they are", message_of(changed, (*view)->directory())));
  if (*lost_bytes > 0)
    console.note(fmt::format("{} lost bytes are written as zeros: iosig container check {}", *lost_bytes,
                             printable(options.path)));
  return say_copied(options, options.to, (*view)->size(), "written", console);
}

int run_upgrade(const ContainerArguments& options, Console& console) {
  const auto directory = ContainerDirectory::open(options.path);
  if (!directory) return console.fail(directory.error());
  const auto before = upgrade_container(**directory, options.dry_run);
  if (!before) return console.fail(before.error());
  if (console.json)
    console.say_json("iosig.container-upgrade/1",
                     {{"dry_run", options.dry_run}, {"from", *before}, {"to", newest_container_version}});
  else if (*before == newest_container_version)
    console.say(fmt::format("'{}' has version {} already", printable(options.path), *before));
  else
    console.say(fmt::format("'{}': {} of version {} now, not {}", printable(options.path),
                            options.dry_run ? "new writers would be" : "new writers are", newest_container_version,
                            *before));
  return yes;
}

int run_rm(const ContainerArguments& options, Console& console) {
  int status = yes;
  ordered_json removed = ordered_json::array(), refused = ordered_json::array();
  for (const std::string& path : options.paths) {
    const auto removal = removal_of(path);
    auto done = removal ? Result<void>() : Result<void>(pass_on(removal.error()));
    if (done && !options.dry_run) done = unlink_container(path);
    if (!done) {
      status = std::max(status, console.fail(done.error()));
      refused.push_back({{"path", printable(path)}, {"message", done.error().message}});
      continue;
    }
    ordered_json directories = ordered_json::array();
    for (const std::string& directory : removal->directories) directories.push_back(printable(directory));
    removed.push_back({{"path", printable(path)}, {"data_bytes", removal->data_bytes}, {"folders", directories}});
    if (console.json) continue;
    const std::size_t targets = removal->directories.size() - 1;
    console.say(fmt::format("'{}': {}removed ({}{})", printable(path), options.dry_run ? "would be " : "",
                            about_bytes(static_cast<double>(removal->data_bytes)),
                            targets == 0 ? "" : fmt::format(", on {} target{}", targets, targets == 1 ? "" : "s")));
  }
  if (console.json)
    console.say_json("iosig.container-removal/1",
                     {{"dry_run", options.dry_run}, {"removed", removed}, {"refused", refused}});
  return status;
}

}  // namespace

void add_container(Verb app, Action& action) {
  const Verb container =
      app.add_verb("container", "Inspect, repair and flatten containers: files that many writers wrote");
  container.require_verb();
  container.footer("Example: iosig container ls checkpoint");
  const auto options = std::make_shared<ContainerArguments>();
  const auto add = [&](const char* name, const char* help, const std::string& footer, const char* document,
                       int (*run)(const ContainerArguments&, Console&)) {
    const Verb verb = container.add_verb(name, help);
    verb.add_option("PATH", options->path, container_help).required();
    verb.footer(footer);
    verb.when_chosen(action, document, [=](Console& console) { return run(*options, console); });
    return verb;
  };
  const Verb create = add("create", "Make an empty container",
                          "Example: iosig container create --target /mnt/a --target /mnt/b checkpoint", "", run_create);
  create.add_option("--index", options->index, "how writes are remembered")
      .check(one_of({"pattern", "traditional"}))
      .shows_default();
  create.add_option("--target", options->targets, "a directory for data, used in turn with others; absolute")
      .repeatable()
      .type_name("DIRECTORY");
  create.add_option("--subfolders", options->subdirectories, "number of subdirectories for the pieces")
      .check(count_between(1, 4096))
      .shows_default();
  const Verb rm = container.add_verb("rm", "Delete containers with their data on all targets, for good");
  rm.add_option("PATH", options->paths, "containers").required();
  rm.add_flag("--dry-run", options->dry_run, "show what would be removed; remove nothing");
  rm.footer(
      "This cannot be undone: look with --dry-run first. Programs that have one open keep it until they close it.\n"
      "Example: iosig container rm --dry-run checkpoint");
  rm.when_chosen(action, "iosig.container-removal/1", [=](Console& console) { return run_rm(*options, console); });
  add("ls", "List the writers and their pieces",
      "Exit status: 0 sound, 1 bytes are lost, 3 it is not a container, 4 the system refused.\n"
      "Example: iosig container ls checkpoint",
      "iosig.container-list/1", run_ls);
  add("index", "Show the index of all writers as one pattern", "Example: iosig container index checkpoint",
      "iosig.pattern/1", run_index);
  const Verb check = add("check", "Report lost bytes and other damage",
                         "Exit status: 0 sound, 1 something is wrong, 3 it is not a container, 4 the system refused.\n"
                         "Example: iosig container check --data checkpoint",
                         "iosig.container-check/1", run_container_check);
  check.add_flag("--data", options->data, "read all data, too, and compare them with their checksums");
  const Verb repair =
      add("repair", "Complete the indices of dead writers; quarantine damaged pieces",
          "Example: iosig container repair --dry-run checkpoint", "iosig.container-repair/1", run_repair);
  repair.add_flag("--claim", options->claim, "give the data on its targets to this copy; the original must be gone");
  repair.add_flag("--dry-run", options->dry_run, "show what would be done; change nothing");
  repair.add_option("--target", options->targets, "a target of create, which holds a copy of the lost manifest")
      .repeatable()
      .type_name("DIRECTORY");
  add("upgrade", "Let new writers use the newest version of the format",
      "Programs of an older IOSIG cannot open the container afterwards.\n"
      "Example: iosig container upgrade checkpoint",
      "iosig.container-upgrade/1", run_upgrade)
      .add_flag("--dry-run", options->dry_run, "show what would be done; change nothing");
  const Verb flatten = add("flatten", "Replace the container by an ordinary file with the same bytes",
                           "Example: iosig container flatten checkpoint", "iosig.container-copy/1", run_flatten);
  const Verb copy =
      add("export", "Write the bytes into an ordinary file elsewhere",
          "Example: iosig container export checkpoint /archive/checkpoint", "iosig.container-copy/1", run_export);
  for (const Verb verb : {flatten, copy})
    verb.add_flag("--dry-run", options->dry_run, "show what would be written; write nothing");
  copy.add_flag("--damaged", options->damaged, "write a damaged file, with zeros for lost bytes");
  copy.add_option("FILE", options->to, "the file to create; it must not exist").required();
}

}  // namespace iosig::cli
