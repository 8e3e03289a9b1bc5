/*
 * The main function of a program that has a wmain: linked from libndcompat_main.a, and only when the program
 * brings no main of its own. A C wmain has its plain name; a C++ one is mangled by its parameters.
 */
#include <stdio.h>
#include <wchar.h>

typedef int wide_main(int argc, wchar_t **argv, wchar_t **environment);

int ndw_run_wmain(char **argv, char **environment, wide_main *wmain);

#define CANDIDATE(name, symbol) extern wide_main name __asm__(symbol) __attribute__((weak))

CANDIDATE(c_main, "wmain");
CANDIDATE(cxx_main, "_Z5wmainiPPw");                    /* (int, wchar_t **) */
CANDIDATE(cxx_main_environment, "_Z5wmainiPPwS0_");     /* (int, wchar_t **, wchar_t **) */
CANDIDATE(cxx_main_const, "_Z5wmainiPPKw");             /* (int, const wchar_t **) */
CANDIDATE(cxx_main_const_environment, "_Z5wmainiPPKwS1_");
CANDIDATE(cxx_main_void, "_Z5wmainv");

int main(int argc, char **argv, char **environment)
{
    wide_main *const candidates[] = {
        c_main, cxx_main, cxx_main_environment, cxx_main_const, cxx_main_const_environment, cxx_main_void,
    };
    (void)argc;
    for (size_t i = 0; i < sizeof candidates / sizeof candidates[0]; i++) {
        if (candidates[i])
            return ndw_run_wmain(argv, environment, candidates[i]);
    }
    fputs("ndcompat: the program has neither main nor wmain\n", stderr);
    return 1;
}
