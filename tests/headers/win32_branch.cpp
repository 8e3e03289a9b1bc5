// SPDX-License-Identifier: MIT OR Apache-2.0
// A source that chooses by _WIN32, compiled with ndwin32.h in front.
#if !defined(_WIN32) || !defined(_UCRT) || defined(__linux__) || defined(__unix__)
#error "this is the branch for Linux"
#endif
#include <winsock2.h>
#include <ws2tcpip.h>
#include <windows.h>
#include <ndsupport.h>
#include <ntstatus.h>
#include <initguid.h>
#include <cstdio>
#include <regex>
#include <string>
#include <thread>

int main()
{
    std::thread([] { std::puts("branch"); }).join();
    return std::regex_match(std::string("_WIN32"), std::regex("_WIN\\d+")) && sizeof(SOCKET) == 8 ? 0 : 1;
}
