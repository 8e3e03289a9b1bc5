//! Programs that link the double export its functions, so that the library that they load uses them instead of the real ones.
//! This is the build script of every package with such programs.

fn main() {
    let device = ["ibv_*", "rdma_*", "getifaddrs", "freeifaddrs"];
    let system = [
        "epoll_create1",
        "epoll_ctl",
        "eventfd",
        "timerfd_create",
        "timerfd_settime",
        "socket",
        "bind",
        "pthread_create",
        "open64",
    ];
    for names in device.into_iter().chain(system) {
        println!("cargo::rustc-link-arg=-Wl,--export-dynamic-symbol={names}");
    }
}
