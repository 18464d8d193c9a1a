// Nothing of this library is destroyed when the program ends.
//
// The compiler and the C++ library register the destructors of variables by __cxa_atexit(). Threads of the program may
// run on while exit() calls them, and intercepted calls of such a thread would use destroyed objects. They would also
// cost every short program the pages of their code, and have nothing to do that the end of the process does not. All
// that must happen at the end is in functions that are marked as destructors.
//
// The definition is for this library alone: exported, it would take the destructors of the whole program.
extern "C" [[gnu::visibility("hidden")]] int __cxa_atexit(void (* /*destroy*/)(void*), void* /*object*/,
                                                          void* /*library*/);
extern "C" int __cxa_atexit(void (* /*destroy*/)(void*), void* /*object*/, void* /*library*/) { return 0; }
