/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Defines _WIN32, for sources that have code for Windows and for Linux: `#ifdef _WIN32` is true after this header.
 *
 * It must not be true in headers of Linux. So this file includes those of the C and C++ library and ndcompat's before it
 * defines _WIN32. Headers of Linux libraries that the program uses (Boost, Asio, ...) must come before this one as well:
 *
 *     g++ ... -include prefix.h      with prefix.h:    #include <boost/asio.hpp>
 *                                                      #include <ndwin32.h>
 *
 * Without such a library, `-include ndwin32.h` is enough. Include other system headers that are not listed here before it.
 */
#ifndef NDWIN32_H
#define NDWIN32_H

#include "ndwin/keywords.h"
#ifdef __cplusplus
#include <algorithm>
#include <array>
#include <atomic>
#include <bitset>
#include <cassert>
#include <chrono>
#include <climits>
#include <cmath>
#include <condition_variable>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <cwchar>
#include <deque>
#include <exception>
#include <forward_list>
#include <fstream>
#include <functional>
#include <future>
#include <initializer_list>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <limits>
#include <list>
#include <locale>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <ostream>
#include <queue>
#include <random>
#include <ratio>
#include <regex>
#include <set>
#include <sstream>
#include <stack>
#include <stdexcept>
#include <streambuf>
#include <string>
#include <system_error>
#include <thread>
#include <tuple>
#include <type_traits>
#include <typeindex>
#include <typeinfo>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <valarray>
#include <vector>
#if __cplusplus >= 201402L
#include <shared_mutex>
#endif
#if __cplusplus >= 201703L
#include <any>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>
#include <variant>
#endif
#if __cplusplus >= 202002L
#include <bit>
#include <compare>
#include <concepts>
#include <numbers>
#include <ranges>
#include <span>
#include <version>
#ifdef __cpp_impl_coroutine
#include <coroutine>
#endif
#endif
#endif

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <inttypes.h>
#include <limits.h>
#include <locale.h>
#include <malloc.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <wchar.h>
#include <wctype.h>

#include "winsock2.h"
#include "ws2tcpip.h"
#include "mswsock.h"
#include "mstcpip.h"
#include "iphlpapi.h"
#include "windows.h"
#include "objbase.h"
#include "intrin.h"
#include "io.h"
#include "process.h"
#include "strsafe.h"
#include "tchar.h"

/* Tells ndwin/config.h that this is Linux although __linux__ is undefined. */
#define NDCOMPAT_WIN32_BRANCH 1

#undef linux
#undef __linux
#undef __linux__
#undef __gnu_linux__
#undef unix
#undef __unix
#undef __unix__
#define _WIN32 1
#define _WIN64 1
#define WIN32  1
#define WIN64  1
/* Microsoft's C library has what C11's has, as struct timespec. */
#define _UCRT
#if defined(__x86_64__)
#define _M_X64   100
#define _M_AMD64 100
#elif defined(__aarch64__)
#define _M_ARM64 1
#endif

#endif /* NDWIN32_H */
