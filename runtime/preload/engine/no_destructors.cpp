// Nothing of this library is destroyed when the program ends.
//
// The compiler and the C++ library register the destructors of variables by __cxa_atexit(). Threads of the program may
// run on while exit() calls them, and intercepted calls of such a thread would use destroyed objects. They would also
// cost every short program the pages of their code, and have nothing to do that the end of the process does not. All
// that must happen at the end is in functions that are marked as destructors.
//
// The definition is for this library alone: exported, it would take the destructors of the whole program.
// It has a name of its own for the compiler, which knows __cxa_atexit() as a function that is exported.
extern "C" [[gnu::visibility("hidden")]] int iosig_register_no_destructor(void (*destroy)(void*), void* object,
                                                                          void* library) __asm__("__cxa_atexit");
extern "C" int iosig_register_no_destructor(void (* /*destroy*/)(void*), void* /*object*/, void* /*library*/) {
  return 0;
}
