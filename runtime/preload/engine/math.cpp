// The functions of libm, for the engine. If they were linked, each program would load libm for them, a tenth of the
// time that a short program takes. Only a program with rules for containers needs them: they read the storage
// description and predict times. For such a program libm is loaded when this library is; a later load could interrupt
// the program's malloc() in a signal handler.

#include <dlfcn.h>

#include <cstdlib>

namespace {

void* libm() {
  static void* const library = ::dlopen("libm.so.6", RTLD_LAZY | RTLD_LOCAL);
  return library;
}

__attribute__((constructor)) void load() {
  if (std::getenv("IOSIG_RULES") != nullptr) (void)libm();
}

template <class Function>
Function* in_libm(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(libm(), name));
}

}  // namespace

// Here they have names of their own, because the compiler knows those of libm by heart.
extern "C" {

double iosig_ceil(double x) __asm__("ceil");
double iosig_exp(double x) __asm__("exp");
double iosig_expm1(double x) __asm__("expm1");
double iosig_lgamma(double x) __asm__("lgamma");
double iosig_log(double x) __asm__("log");
double iosig_log1p(double x) __asm__("log1p");
double iosig_sqrt(double x) __asm__("sqrt");
long long iosig_llround(double x) __asm__("llround");
int iosig_fegetround() __asm__("fegetround");
int iosig_fesetround(int direction) __asm__("fesetround");

double iosig_ceil(double x) { return in_libm<double(double)>("ceil")(x); }
double iosig_exp(double x) { return in_libm<double(double)>("exp")(x); }
double iosig_expm1(double x) { return in_libm<double(double)>("expm1")(x); }
double iosig_lgamma(double x) { return in_libm<double(double)>("lgamma")(x); }
double iosig_log(double x) { return in_libm<double(double)>("log")(x); }
double iosig_log1p(double x) { return in_libm<double(double)>("log1p")(x); }
double iosig_sqrt(double x) { return in_libm<double(double)>("sqrt")(x); }
long long iosig_llround(double x) { return in_libm<long long(double)>("llround")(x); }
int iosig_fegetround() { return in_libm<int()>("fegetround")(); }
int iosig_fesetround(int direction) { return in_libm<int(int)>("fesetround")(direction); }

}  // extern "C"
