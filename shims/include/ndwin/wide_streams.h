/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * std::wcout, std::wcerr and std::wclog write UTF-8 to their C stream, which stays narrow: otherwise the first wide character
 * makes it a wide one, and whatever printf or std::cout writes to it afterwards is lost.
 *
 * std::ios::sync_with_stdio(false) puts the C++ library's own buffers in their place; those do not touch the C stream.
 */
#ifndef NDWIN_WIDE_STREAMS_H
#define NDWIN_WIDE_STREAMS_H

#include <cstdio>
#include <ios>
#include <iostream>
#include <new>
#include <streambuf>
#include "crt/wide_path.h"

namespace ndwin {

/* Writes through to a C stream, which has the only buffer. */
class wide_output : public std::basic_streambuf<wchar_t> {
public:
    explicit wide_output(std::FILE *stream) : stream_(stream) {}

protected:
    int_type overflow(int_type unit = traits_type::eof())
    {
        if (traits_type::eq_int_type(unit, traits_type::eof()))
            return sync() == 0 ? traits_type::not_eof(unit) : traits_type::eof();
        const wchar_t text = traits_type::to_char_type(unit);
        return xsputn(&text, 1) == 1 ? unit : traits_type::eof();
    }

    std::streamsize xsputn(const wchar_t *text, std::streamsize length)
    {
        char bytes[512];
        std::size_t used = 0;
        for (std::streamsize at = 0; at < length; at++) {
            used += encode(static_cast<unsigned>(text[at]), bytes + used);
            if ((used > sizeof bytes - 4 || at + 1 == length) && used != 0) {
                if (std::fwrite(bytes, 1, used, stream_) != used)
                    return 0;
                used = 0;
            }
        }
        return length;
    }

    int sync() { return std::fflush(stream_) == 0 ? 0 : -1; }

private:
    /* UTF-8 of one character; what is none becomes U+FFFD. */
    static std::size_t encode(unsigned character, char *bytes)
    {
        const bool is_none = character > 0x10FFFF || (character >= 0xD800 && character < 0xE000);
        return static_cast<std::size_t>(ndw_utf8(is_none ? 0xFFFD : character, bytes));
    }

    std::FILE *stream_;
};

/* Each source that includes <iostream> has one, like std::ios_base::Init. The first of a library puts the buffers in place, the
 * last takes them out, as the library may be unloaded. */
class wide_outputs {
public:
    wide_outputs()
    {
        if (users()++ == 0) {
            put(std::wcout, 0, stdout);
            put(std::wcerr, 1, stderr);
            put(std::wclog, 2, stderr);
        }
    }

    ~wide_outputs()
    {
        if (--users() == 0) {
            take(std::wcout, 0);
            take(std::wcerr, 1);
            take(std::wclog, 2);
        }
    }

private:
    wide_outputs(const wide_outputs &);
    wide_outputs &operator=(const wide_outputs &);

    struct replaced {
        wide_output *ours;
        std::basic_streambuf<wchar_t> *former;
    };

    static int &users()
    {
        static int count;
        return count;
    }

    static replaced &entry(int index)
    {
        static replaced entries[3];
        return entries[index];
    }

    static void put(std::wostream &stream, int index, std::FILE *file)
    {
        replaced &one = entry(index);
        one.ours = new wide_output(file);
        one.former = stream.rdbuf(one.ours);
    }

    static void take(std::wostream &stream, int index)
    {
        replaced &one = entry(index);
        if (stream.rdbuf() == one.ours)
            stream.rdbuf(one.former);
    }
};

static const wide_outputs wide_outputs_of_this_source;

}

#endif /* NDWIN_WIDE_STREAMS_H */
