/* SPDX-License-Identifier: MIT */
/* What the user wants: the options that a decision reads. */
#ifndef GPB_POLICY_H
#define GPB_POLICY_H

/* EAGER: as AUTO for every call, but the GPU is started when the library is loaded. */
enum gpb_offload_when { GPB_OFFLOAD_AUTO, GPB_OFFLOAD_ALWAYS, GPB_OFFLOAD_NEVER, GPB_OFFLOAD_EAGER };
enum gpb_math_policy { GPB_POLICY_FP32, GPB_POLICY_IEEE, GPB_POLICY_TF32 };

typedef struct gpb_policy {
    enum gpb_offload_when offload;
    enum gpb_math_policy math;
    const char *kernel;          /* NULL, or the name of the only kernel to use */
    int splits;                  /* 0, or the parts to cut k into */
} gpb_policy;

#endif
