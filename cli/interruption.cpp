#include "interruption.h"

namespace iosig::cli {
namespace {

volatile std::sig_atomic_t interrupting_signal = 0;

}  // namespace

int interruption() { return interrupting_signal; }

NoticeSignals::NoticeSignals() {
  for (Handler& handler : handlers_) {
    struct sigaction note {};
    note.sa_handler = [](int number) { interrupting_signal = number; };
    ::sigaction(handler.number, nullptr, &handler.before);
    if (handler.before.sa_handler != SIG_IGN) ::sigaction(handler.number, &note, nullptr);
  }
}

NoticeSignals::~NoticeSignals() {
  for (const Handler& handler : handlers_) ::sigaction(handler.number, &handler.before, nullptr);
}

}  // namespace iosig::cli
