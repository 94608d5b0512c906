/* SPDX-License-Identifier: MIT */
/* A program that asks for PBLAS's logical block, built two ways.
   -DLIBRARY: a library that has a pilaenv_ of its own, as libscalapack does, and asks for it by name.
   Else a program: `pblas linked` asks by the library that it is linked with, `pblas opened FILE` by one that
   it opens, and `pblas alone` asks itself, where nobody need have an answer. `pblas set VALUE` sets our
   option first. It prints the answer, 0 if there is none. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#ifdef LIBRARY
int pilaenv_(const int *ictxt, const char *prec) { return *prec == 'D' && *ictxt == 7 ? 48 : -1; }

int block(void)
{
    const int ictxt = 7;
    return pilaenv_(&ictxt, "D");
}
#else
extern int block(void) __attribute__((weak)); /* absent if it is opened */

int main(int count, char **arguments)
{
    const int ictxt = 7;
    int (*asked)(void) = block;
    if (strcmp(arguments[1], "opened") == 0)
        *(void **)&asked = dlsym(dlopen(arguments[2], RTLD_NOW), "block");
    if (strcmp(arguments[1], "set") == 0) {
        int (*set)(const char *, const char *);
        *(void **)&set = dlsym(RTLD_DEFAULT, "gpublas_set_option");
        if (!set || set("PBLAS_BLOCK", arguments[2])) return 1;
    }
    if (strcmp(arguments[1], "alone") == 0) {
        int (*alone)(const int *, const char *);
        *(void **)&alone = dlsym(RTLD_DEFAULT, "pilaenv_");
        printf("%d\n", alone ? alone(&ictxt, "D") : 0);
        return count != 2;
    }
    printf("%d %d\n", asked(), asked());
    return 0;
}
#endif
