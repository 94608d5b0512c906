/* SPDX-License-Identifier: MIT */
/* Every exported BLAS name: one indirect jump through its slot. Nothing is touched on the way, so every signature passes: hidden string
   lengths, complex results, integers of either width. A slot first holds a lazy entry that asks gpb_symbol_bind for the target, which
   stores it in the slot: a door of ours for the computed routines, the host BLAS's function for the rest (and for all of
   them when we stand aside). */
#if !defined(__x86_64__) || !defined(__ELF__)
#error "trampoline.S: written for x86-64 ELF"
#endif

        .set    number, 0
        .macro  trampoline name
        .text
        .p2align 4
        .globl  \name
        .type   \name, @function
\name:  endbr64
        jmp     *gpb_slots + number * 8(%rip)
        .size   \name, . - \name
.Llazy_\name:
        endbr64
        pushq   $number
        jmp     lazy
        .data
        .quad   .Llazy_\name
        .set    number, number + 1
        .endm

        .data
        .p2align 6
        .globl  gpb_slots
        .hidden gpb_slots
        .type   gpb_slots, @object
gpb_slots:

/* The first call of a name. Keeps every register that may carry an argument (System V ABI: six integer, eight vector, al). */
        .text
        .type   lazy, @function
lazy:   .cfi_startproc
        .cfi_def_cfa_offset 16
        pushq   %rbp
        .cfi_def_cfa_offset 24
        .cfi_offset %rbp, -24
        movq    %rsp, %rbp
        .cfi_def_cfa_register %rbp
        andq    $-16, %rsp
        subq    $192, %rsp
        movq    %rax, 0(%rsp)
        movq    %rdi, 8(%rsp)
        movq    %rsi, 16(%rsp)
        movq    %rdx, 24(%rsp)
        movq    %rcx, 32(%rsp)
        movq    %r8, 40(%rsp)
        movq    %r9, 48(%rsp)
        movq    %r10, 56(%rsp)
        movups  %xmm0, 64(%rsp)
        movups  %xmm1, 80(%rsp)
        movups  %xmm2, 96(%rsp)
        movups  %xmm3, 112(%rsp)
        movups  %xmm4, 128(%rsp)
        movups  %xmm5, 144(%rsp)
        movups  %xmm6, 160(%rsp)
        movups  %xmm7, 176(%rsp)
        movl    8(%rbp), %edi
        call    gpb_symbol_bind
        movq    %rax, %r11
        movq    0(%rsp), %rax
        movq    8(%rsp), %rdi
        movq    16(%rsp), %rsi
        movq    24(%rsp), %rdx
        movq    32(%rsp), %rcx
        movq    40(%rsp), %r8
        movq    48(%rsp), %r9
        movq    56(%rsp), %r10
        movups  64(%rsp), %xmm0
        movups  80(%rsp), %xmm1
        movups  96(%rsp), %xmm2
        movups  112(%rsp), %xmm3
        movups  128(%rsp), %xmm4
        movups  144(%rsp), %xmm5
        movups  160(%rsp), %xmm6
        movups  176(%rsp), %xmm7
        leave
        .cfi_def_cfa %rsp, 16
        addq    $8, %rsp
        .cfi_def_cfa_offset 8
        jmp     *%r11
        .cfi_endproc
        .size   lazy, . - lazy

#define SYMBOL(name, stem, language, width, door) trampoline name;
#include "src/symbols.h"

        .data
        .size   gpb_slots, number * 8
        .section .note.GNU-stack, "", @progbits
