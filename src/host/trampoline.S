/* SPDX-License-Identifier: MIT */
/* Every exported BLAS name is one indirect jump through its slot. Nothing else is touched, so every signature
   passes: hidden string lengths, complex results, integers of either width. At first a slot holds a lazy
   entry, which asks gpb_symbol_bind for the target. That function stores the target in the slot: our door if
   we compute the routine, else the host BLAS's function (always the host's function if we stand aside). */
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
.Ladapter_\name:
        endbr64
        pushq   $number
        jmp     adapter
        .data
        .quad   .Llazy_\name
        .section .data.rel.ro.lazies, "aw", @progbits
        .quad   .Llazy_\name
        .section .data.rel.ro.adapters, "aw", @progbits
        .quad   .Ladapter_\name
        .set    number, number + 1
        .endm

        .data
        .p2align 6
        .globl  gpb_slots
        .hidden gpb_slots
        .type   gpb_slots, @object
gpb_slots:
/* The first contents of the slots, to restore them; and the entries that call a host of the other width
   (adapt.c). */
        .section .data.rel.ro.lazies, "aw", @progbits
        .p2align 6
        .globl  gpb_lazies
        .hidden gpb_lazies
        .type   gpb_lazies, @object
gpb_lazies:
        .section .data.rel.ro.adapters, "aw", @progbits
        .p2align 6
        .globl  gpb_adapters
        .hidden gpb_adapters
        .type   gpb_adapters, @object
gpb_adapters:

/* The first call of a name. It keeps every register that may carry an argument (System V ABI: six integer
   registers, eight vector registers, al). */
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
        movq    16(%rbp), %rsi          /* the address that the call returns to */
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

/* A Fortran call of the host's function of the other width. It has at most sixteen arguments, hidden lengths
   included, all of them addresses or lengths. They are laid out as struct arguments of adapt.c: ten from the
   stack, six from registers, room for sixteen integers. As many are read from the stack as any routine has;
   those beyond the caller's own are not used. */
        .type   adapter, @function
adapter: .cfi_startproc
        .cfi_def_cfa_offset 16
        pushq   %rbp
        .cfi_def_cfa_offset 24
        .cfi_offset %rbp, -24
        movq    %rsp, %rbp
        .cfi_def_cfa_register %rbp
        andq    $-16, %rsp
        subq    $256, %rsp
        .irp    place, 0, 8, 16, 24, 32, 40, 48, 56, 64, 72
        movq    24+\place(%rbp), %rax
        movq    %rax, \place(%rsp)
        .endr
        movq    %rdi, 80(%rsp)
        movq    %rsi, 88(%rsp)
        movq    %rdx, 96(%rsp)
        movq    %rcx, 104(%rsp)
        movq    %r8, 112(%rsp)
        movq    %r9, 120(%rsp)
        movl    8(%rbp), %edi
        movq    %rsp, %rsi
        call    gpb_adapt_target
        movq    80(%rsp), %rdi
        movq    88(%rsp), %rsi
        movq    96(%rsp), %rdx
        movq    104(%rsp), %rcx
        movq    112(%rsp), %r8
        movq    120(%rsp), %r9
        call    *%rax
        movl    %eax, %eax              /* an integer: the upper half is undefined for 32 bits, and 0 for
                                           64 */
        leave
        .cfi_def_cfa %rsp, 16
        addq    $8, %rsp
        .cfi_def_cfa_offset 8
        ret
        .cfi_endproc
        .size   adapter, . - adapter

#define SYMBOL(name, stem, language, width, door) trampoline name;
#include "src/host/symbols.h"

        .data
        .size   gpb_slots, number * 8
        .section .data.rel.ro.lazies
        .size   gpb_lazies, number * 8
        .section .data.rel.ro.adapters
        .size   gpb_adapters, number * 8
        .section .note.GNU-stack, "", @progbits
