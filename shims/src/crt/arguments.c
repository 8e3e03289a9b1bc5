/* __argc and __argv, the arguments of main: linked from libndcompat_main.a, and only into programs that use them. */
int ndw___argc;
char **ndw___argv;

/* The C library hands constructors what it hands to main. This one runs before those of the program. */
__attribute__((constructor(101))) static void keep_arguments(int argc, char **argv)
{
    ndw___argc = argc;
    ndw___argv = argv;
}
