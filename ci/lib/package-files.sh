# What tells other build systems where the library is: files for pkg-config and CMake.
# shellcheck shell=bash

# What the static library leaves open; libgcc_s unwinds panics up to where they are stopped.
LIBRARIES=(-libverbs -lrdmacm -lpthread -ldl -lm -lgcc_s)

# package_files ROOT LIBDIR INCLUDEDIR VERSION: writes them. The folders are relative to the prefix, which is ROOT for now: the
# files name no absolute path, so the whole may be moved.
package_files() {
    local root=$1 libdir=$2 includedir=$3 version=$4 up
    mkdir -p "$root/$libdir/pkgconfig" "$root/$libdir/cmake/ndcompat"
    up=$(realpath -ms --relative-to="/$libdir/pkgconfig" /)
    pkgconfig "$up" "$libdir" "$includedir" "$version" >"$root/$libdir/pkgconfig/ndcompat.pc" <<EOF
Requires.private: libibverbs librdmacm
Libs: -L\${libdir} -lndcompat_main -lndcompat
Libs.private: ${LIBRARIES[*]:2}
EOF
    # Of a .so and a .a in one folder, the linker takes the first for -lndcompat, whatever pkg-config --static says.
    pkgconfig "$up" "$libdir" "$includedir" "$version" >"$root/$libdir/pkgconfig/ndcompat-static.pc" <<EOF
Requires: libibverbs librdmacm
Libs: -L\${libdir} -lndcompat_main -l:libndcompat.a ${LIBRARIES[*]:2}
EOF
    up=$(realpath -ms --relative-to="/$libdir/cmake/ndcompat" /)
    sed -e "s|@UP@|$up|; s|@LIBDIR@|$libdir|; s|@INCLUDEDIR@|$includedir|; s|@LIBRARIES@|${LIBRARIES[*]#-l}|" \
        "$CI_LIB/ndcompatConfig.cmake.in" >"$root/$libdir/cmake/ndcompat/ndcompatConfig.cmake"
    sed -e "s|@VERSION@|$version|" \
        "$CI_LIB/ndcompatConfigVersion.cmake.in" >"$root/$libdir/cmake/ndcompat/ndcompatConfigVersion.cmake"
}

# pkgconfig UP LIBDIR INCLUDEDIR VERSION <REST: prints a whole file.
pkgconfig() {
    cat <<EOF
prefix=\${pcfiledir}/$1
libdir=\${prefix}/$2
includedir=\${prefix}/$3

Name: ndcompat
Description: Windows NetworkDirect SPI v2 over rdma-core
URL: https://github.com/ndcompat/ndcompat
Version: $4
Cflags: -isystem\${includedir}/ndcompat -isystem\${includedir}/ndcompat/win32 -include\${includedir}/ndcompat/win32/ndwin/keywords.h -Wno-narrowing
EOF
    cat
}
