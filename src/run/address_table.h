/* SPDX-License-Identifier: MIT */
/* Tables of addresses on the device: where the members of a pointer-array batch lie. */
#ifndef GPB_ADDRESS_TABLE_H
#define GPB_ADDRESS_TABLE_H

#include "src/run/operand.h"

/* Bytes of the tables of a pointer-array batch; 0 for others. */
int64_t gpb_address_table_bytes(const gpb_call *call, const gpb_plan *plan);
/* Table `which` on the device: triples for the kernel, or the addresses of an operand for packing. */
enum { GPB_ADDRESS_TRIPLES = GPB_OPERANDS };
CUdeviceptr gpb_address_table(const gpb_run *run, int which);
/* Sends the addresses of the operand's members, for the packing kernel. */
CUresult gpb_address_send(gpb_run *run, const gpb_run_operand *operand, const gpb_region *tile);
/* Fills in the addresses and strides of *args. Where members are scattered, sends a table of their addresses.
   a is NULL if the kernel reads neither A nor B. */
CUresult gpb_address_bind_args(gpb_run *run, const gpb_region *tile, const gpb_view *a, const gpb_view *b,
                               const gpb_view *c, gpb_gemm_args *args);

#endif
