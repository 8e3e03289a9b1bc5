//! The programs with the double in them export its functions: the library that they load finds those before the real ones.
//! The build script of every package that has such programs.

fn main() {
    for names in ["ibv_*", "rdma_*", "getifaddrs", "freeifaddrs", "epoll_ctl"] {
        println!("cargo::rustc-link-arg=-Wl,--export-dynamic-symbol={names}");
    }
}
