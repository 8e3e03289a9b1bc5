//! The test programs export the double's functions: the library that they load finds those before the real ones.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for names in ["ibv_*", "rdma_*", "getifaddrs", "freeifaddrs", "epoll_ctl"] {
        println!("cargo::rustc-link-arg-tests=-Wl,--export-dynamic-symbol={names}");
    }
}
