/* SPDX-License-Identifier: MIT */
/* The fatbins that nvcc made of kernels/<name>.cu, and the table gpb_images of their addresses. CMake tells
   the assembler their folder. */
#define QUOTE(x) #x
        .section .nv_fatbin, "a", %progbits
#define IMAGE(name, p, arch) .balign 16; .Limage_##name: .incbin QUOTE(name.fatbin);
#include "kernels/images.def"
#undef IMAGE
        .section .data.rel.ro, "aw", %progbits
        .balign 8
        .globl  gpb_images
        .hidden gpb_images
        .type   gpb_images, @object
gpb_images:
#define IMAGE(name, p, arch) .quad .Limage_##name;
#include "kernels/images.def"
        .size   gpb_images, . - gpb_images
        .section .note.GNU-stack, "", @progbits
