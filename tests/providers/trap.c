/* A library that nobody may load: what the ND v1 entry of the test's catalogue leads to. */
#include <stdio.h>
#include <stdlib.h>

__attribute__((constructor)) static void loaded(void)
{
    fputs("the library of an ND v1 provider was loaded\n", stderr);
    abort();
}
