/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * std::wcout, std::wcerr and std::wclog write UTF-8 to their C stream, and std::wcin reads it from its own; they stay narrow:
 * otherwise the first wide character makes a stream a wide one, and whatever printf or std::cout writes to it afterwards is lost,
 * and nothing but wide characters can be read.
 *
 * std::ios::sync_with_stdio(false) puts the C++ library's own buffers in their place; those do not touch the C stream.
 */
#ifndef NDWIN_WIDE_STREAMS_H
#define NDWIN_WIDE_STREAMS_H

#include <cstdio>
#include <cwchar>
#include <ios>
#include <iostream>
#include <new>
#include <streambuf>
#include "crt/wide_path.h"

/* A write to a pipe that nobody reads is an error from then on. */
extern "C" void ndw_make_broken_pipes_errors(void) __attribute__((weak));

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
                /* Not there in a program that does without the library. */
                if (&ndw_make_broken_pipes_errors)
                    ndw_make_broken_pipes_errors();
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

/*
 * Reads from a C stream, which has the only buffer. What the library's fgetwc does is done here once more, as programs that only
 * include <iostream> do without the library.
 */
class wide_input : public std::basic_streambuf<wchar_t> {
public:
    explicit wide_input(std::FILE *stream) : stream_(stream), last_(traits_type::eof()) {}

protected:
    int_type underflow()
    {
        const int_type unit = read();
        return is_end(unit) ? unit : give_back(unit);
    }

    int_type uflow() { return last_ = read(); }

    int_type pbackfail(int_type unit = traits_type::eof())
    {
        const int_type given = is_end(unit) ? last_ : unit;
        last_ = traits_type::eof();
        return is_end(given) ? given : give_back(given);
    }

    std::streamsize xsgetn(wchar_t *text, std::streamsize length)
    {
        std::streamsize at = 0;
        for (; at < length && !is_end(uflow()); at++)
            text[at] = traits_type::to_char_type(last_);
        return at;
    }

private:
    static bool is_end(int_type unit) { return traits_type::eq_int_type(unit, traits_type::eof()); }

    /* Whether other code has made it a wide stream: then the C library reads the characters. */
    bool is_wide() const { return std::fwide(stream_, 0) > 0; }

    /* The next character of UTF-8; what is none becomes U+FFFD. */
    int_type read()
    {
        static const unsigned least[] = {0, 0x80, 0x800, 0x10000};
        if (is_wide())
            return (std::fgetwc)(stream_);
        const int first = std::getc(stream_);
        if (first == EOF)
            return traits_type::eof();
        if (first < 0x80)
            return static_cast<int_type>(first);
        const int more = first < 0xC2 || first > 0xF4 ? 0 : first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;
        unsigned character = static_cast<unsigned>(first) & (0x3Fu >> more);
        for (int left = more; left > 0; left--) {
            const int next = std::getc(stream_);
            if ((next & 0xC0) != 0x80) {
                std::ungetc(next, stream_);
                return 0xFFFD;
            }
            character = character << 6 | (static_cast<unsigned>(next) & 0x3Fu);
        }
        const bool is_none = more == 0 || character < least[more] || character > 0x10FFFF || (character >= 0xD800 && character < 0xE000);
        return is_none ? 0xFFFD : static_cast<int_type>(character);
    }

    /* The character is read next. */
    int_type give_back(int_type unit)
    {
        char bytes[4];
        if (is_wide())
            return (std::ungetwc)(unit, stream_);
        for (int left = ndw_utf8(unit, bytes); left > 0; left--) {
            if (std::ungetc(static_cast<unsigned char>(bytes[left - 1]), stream_) == EOF)
                return traits_type::eof();
        }
        return unit;
    }

    std::FILE *stream_;
    int_type last_;
};

/* Each source that includes <iostream> has one, like std::ios_base::Init. The first of a library puts the buffers in place, the
 * last takes them out, as the library may be unloaded. */
class wide_outputs {
public:
    wide_outputs()
    {
        if (users()++ == 0) {
            put(std::wcout, 0, new wide_output(stdout));
            put(std::wcerr, 1, new wide_output(stderr));
            put(std::wclog, 2, new wide_output(stderr));
            put(std::wcin, 3, new wide_input(stdin));
        }
    }

    ~wide_outputs()
    {
        if (--users() == 0) {
            take(std::wcout, 0);
            take(std::wcerr, 1);
            take(std::wclog, 2);
            take(std::wcin, 3);
        }
    }

private:
    wide_outputs(const wide_outputs &);
    wide_outputs &operator=(const wide_outputs &);

    struct replaced {
        std::basic_streambuf<wchar_t> *ours;
        std::basic_streambuf<wchar_t> *former;
    };

    static int &users()
    {
        static int count;
        return count;
    }

    static replaced &entry(int index)
    {
        static replaced entries[4];
        return entries[index];
    }

    static void put(std::basic_ios<wchar_t> &stream, int index, std::basic_streambuf<wchar_t> *buffer)
    {
        replaced &one = entry(index);
        one.ours = buffer;
        one.former = stream.rdbuf(one.ours);
    }

    static void take(std::basic_ios<wchar_t> &stream, int index)
    {
        replaced &one = entry(index);
        if (stream.rdbuf() == one.ours)
            stream.rdbuf(one.former);
    }
};

static const wide_outputs wide_outputs_of_this_source;

}

#endif /* NDWIN_WIDE_STREAMS_H */
