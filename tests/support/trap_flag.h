/* The processor traps after each instruction while the flag is set: SIGTRAP. The stack below the stack pointer, which
 * the compiler may use, is left alone. x86-64 alone. */
#pragma once

enum { trap_flag = 0x100 };

static inline void set_trap(void) {
  __asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; orq %0, (%%rsp); popfq; lea 128(%%rsp), %%rsp"
                   :
                   : "i"(trap_flag)
                   : "cc", "memory");
}
static inline void clear_trap(void) {
  __asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; andq %0, (%%rsp); popfq; lea 128(%%rsp), %%rsp"
                   :
                   : "i"(~trap_flag)
                   : "cc", "memory");
}
