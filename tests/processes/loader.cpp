// SPDX-License-Identifier: MIT OR Apache-2.0
// A program that loads the library by its path, has it at work, unloads it and ends, or loads it again: its threads live on, and
// so must its code.
//
//   loader LIBRARY
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../check.h"

typedef void* (*CreateEventFunction)(void*, int, int, const wchar_t*);
typedef int (*SetEventFunction)(void*);
typedef unsigned (*WaitFunction)(void*, unsigned);
typedef int (*TimerFunction)(void**, void*, void (*)(void*, unsigned char), void*, unsigned, unsigned, unsigned);

static SetEventFunction set_event;

static void ring(void* event, unsigned char)
{
    set_event(event);
}

int main(int argc, char** argv)
{
    CHECK(argc == 2);
    for (int round = 0; round < 3; round++) {
        void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr)
            fprintf(stderr, "%s\n", dlerror());
        CHECK(library != nullptr);
        const auto create_event = reinterpret_cast<CreateEventFunction>(dlsym(library, "ndw_CreateEventW"));
        const auto wait = reinterpret_cast<WaitFunction>(dlsym(library, "ndw_WaitForSingleObject"));
        const auto create_timer = reinterpret_cast<TimerFunction>(dlsym(library, "ndw_CreateTimerQueueTimer"));
        set_event = reinterpret_cast<SetEventFunction>(dlsym(library, "ndw_SetEvent"));
        CHECK(create_event && wait && create_timer && set_event);
        void *event = create_event(nullptr, 0, 0, nullptr), *timer;
        CHECK(event != nullptr);
        // The timer goes off again and again, on threads of the library's, also when that is closed.
        CHECK(create_timer(&timer, nullptr, ring, event, 1, 1, 0));
        CHECK(wait(event, ~0u) == 0);
        CHECK(dlclose(library) == 0);
        usleep(5000);
        CHECK(wait(event, ~0u) == 0);
    }
    return 0;
}
