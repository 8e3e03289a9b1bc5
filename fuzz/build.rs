//! The targets in C++.

#[cfg(feature = "fuzzing")]
mod table;

#[cfg(not(feature = "fuzzing"))]
fn main() {}

#[cfg(feature = "fuzzing")]
fn main() {
    use std::path::{Path, PathBuf};
    table::make();
    let root = Path::new("..");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    let library = std::env::var("NDCOMPAT_LIBRARY").expect("NDCOMPAT_LIBRARY: use ci/fuzz");
    for target in ["functions", "text"] {
        let source = format!("fuzz_targets/{target}.cpp");
        println!("cargo::rerun-if-changed={source}");
        println!("cargo::rerun-if-env-changed=NDCOMPAT_LIBRARY");
        let folder = Path::new(&library).parent().expect("a folder").display();
        println!("cargo::rustc-link-arg-bin={target}={library}");
        println!("cargo::rustc-link-arg-bin={target}=-Wl,-rpath,{folder}");
        cc::Build::new()
            .cpp(true)
            .std("gnu++17")
            .file(&source)
            .include(root.join("shims/include"))
            .include(root.join("include"))
            .include(&out)
            .flag("-fsanitize=address")
            .compile(&format!("fuzz_{target}"));
    }
    // As for the programs of the double.
    for names in ["ibv_*", "rdma_*", "getifaddrs", "freeifaddrs"] {
        println!("cargo::rustc-link-arg=-Wl,--export-dynamic-symbol={names}");
    }
}
