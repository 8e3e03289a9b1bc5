// The command line of a program with two ends: -s or -c with an address, and options of one letter.
#pragma once

#include "endpoint.h"

// The options that all of them have.
struct EndOptions
{
    bool Server = false;
    SOCKADDR_INET Address;
    Transfer Operation = Transfer::Send;
    WaitMode Mode = WaitMode::Poll;
};

// Reads a command line. The program's own options are read by the members of `Options`: Flag sets one that takes no value, Parse
// reads the value of one that does, and each returns false for a letter that it does not know; Parse for a bad value, too.
template <typename Options>
bool ParseOptions(int argc, TCHAR* argv[], USHORT defaultPort, Options* options)
{
    static const TCHAR* const operations[3] = {_T("send"), _T("write"), _T("read")};
    static const TCHAR* const modes[3] = {_T("poll"), _T("event"), _T("iocp")};

    bool addressed = false;
    for (int i = 1; i < argc; i++)
    {
        if (argv[i][0] != _T('-') || argv[i][1] == 0 || argv[i][2] != 0)
        {
            return false;
        }
        const TCHAR letter = argv[i][1];
        if (options->Flag(letter))
        {
            continue;
        }
        if (i + 1 == argc)
        {
            return false;
        }
        TCHAR* value = argv[i + 1];
        bool ok = false;
        switch (letter)
        {
        case _T('s'):
        case _T('c'):
            options->Server = letter == _T('s');
            ok = !addressed && ParseAddress(value, defaultPort, &options->Address);
            addressed = true;
            break;
        case _T('o'):
            ok = Choose(value, operations, &options->Operation);
            break;
        case _T('w'):
            ok = Choose(value, modes, &options->Mode);
            break;
        default:
            ok = options->Parse(letter, value);
            break;
        }
        if (!ok)
        {
            _ftprintf(stderr, _T("%s %s: not understood\n"), argv[i], value);
            return false;
        }
        i++;
    }
    return addressed;
}
