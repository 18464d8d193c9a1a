#include "prefetching.h"

#include <fcntl.h>
#include <syslog.h>
#include <unistd.h>

#include <algorithm>

#include "iosig/base/files.h"
#include "iosig/prefetch/predictors.h"
#include "iosig/prefetch/report.h"

namespace iosig::fuse {

prefetch::Observer& prefetcher() {
  static constinit prefetch::Observer observer;
  return observer;
}

Result<void> start_prefetching(const MountOptions& options) {
  if (options.prefetch.empty()) return {};
  ReadModel model;
  if (!options.prefetch_model.empty()) {
    auto read = prefetch::read_model_file(options.prefetch_model);
    if (read)
      model = std::move(*read);
    else  // `iosig mount` has read it, and says what is wrong with others
      ::syslog(LOG_WARNING, "%s; prefetching without this model", read.error().message.c_str());
  }
  const bool has_model = !model.files.empty();
  auto make = prefetch::predictor_maker(options.prefetch, {.model = std::move(model)});
  if (!make) return pass_on(make.error());
  if (!*make) return {};                          // "none"
  auto* const settings = new prefetch::Settings;  // its threads have it until the end
  settings->make_predictor = std::move(*make);
  if (options.prefetch_bytes > 0) settings->max_bytes = options.prefetch_bytes;
  settings->is_stream_of_all_threads = true;
  settings->begins_at_first_read = has_model;
  settings->hears_of_sequential = !options.prefetch_report.empty();
  if (!prefetcher().start_now(*settings)) return fail(ErrorKind::system, "no thread could be started for prefetching");
  return {};
}

void end_prefetching(const MountOptions& options) {
  if (options.prefetch.empty()) return;
  if (!options.prefetch_report.empty()) {
    const std::string_view text = prefetcher().report();
    if (options.prefetch_report == "-") {
      prefetch::for_each_line(
          text, [](std::string_view line) { ::syslog(LOG_INFO, "%.*s", static_cast<int>(line.size()), line.data()); });
    } else {
      const Fd file(::open(options.prefetch_report.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
      if (!file || ::write(file.get(), text.data(), text.size()) < 0)
        ::syslog(LOG_ERR, "'%s': the report of prefetching cannot be written", options.prefetch_report.c_str());
    }
  }
  prefetcher().stop();
}

}  // namespace iosig::fuse
