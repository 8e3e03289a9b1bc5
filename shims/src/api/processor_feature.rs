//! `IsProcessorFeaturePresent`.

/// Whether the processor has the feature of a `PF_*` number. Unknown features are absent, as on Windows.
#[cfg(target_arch = "x86_64")]
fn is_present(feature: u32) -> bool {
    match feature {
        // PF_COMPARE_EXCHANGE_DOUBLE, PF_MMX_INSTRUCTIONS_AVAILABLE, PF_XMMI_INSTRUCTIONS_AVAILABLE,
        // PF_RDTSC_INSTRUCTION_AVAILABLE, PF_PAE_ENABLED, PF_XMMI64_INSTRUCTIONS_AVAILABLE, PF_NX_ENABLED: of every x86-64.
        2 | 3 | 6 | 8 | 9 | 10 | 12 => true,
        // PF_SSE3_INSTRUCTIONS_AVAILABLE
        13 => is_x86_feature_detected!("sse3"),
        // PF_COMPARE_EXCHANGE128
        14 => is_x86_feature_detected!("cmpxchg16b"),
        // PF_XSAVE_ENABLED
        17 => is_x86_feature_detected!("xsave"),
        // PF_RDRAND_INSTRUCTION_AVAILABLE
        28 => is_x86_feature_detected!("rdrand"),
        // PF_RDTSCP_INSTRUCTION_AVAILABLE, of every x86-64 since 2008
        32 => true,
        // PF_SSSE3_, PF_SSE4_1_, PF_SSE4_2_, PF_AVX_, PF_AVX2_ and PF_AVX512F_INSTRUCTIONS_AVAILABLE
        36 => is_x86_feature_detected!("ssse3"),
        37 => is_x86_feature_detected!("sse4.1"),
        38 => is_x86_feature_detected!("sse4.2"),
        39 => is_x86_feature_detected!("avx"),
        40 => is_x86_feature_detected!("avx2"),
        41 => is_x86_feature_detected!("avx512f"),
        _ => false,
    }
}

#[cfg(target_arch = "aarch64")]
fn is_present(feature: u32) -> bool {
    use std::arch::is_aarch64_feature_detected;
    match feature {
        // PF_COMPARE_EXCHANGE_DOUBLE, PF_NX_ENABLED, PF_COMPARE_EXCHANGE128, PF_COMPARE64_EXCHANGE128,
        // PF_ARM_VFP_32_REGISTERS_AVAILABLE, PF_ARM_NEON_INSTRUCTIONS_AVAILABLE, PF_ARM_V8_INSTRUCTIONS_AVAILABLE
        2 | 12 | 14 | 15 | 18 | 19 | 29 => true,
        // PF_ARM_V8_CRYPTO_INSTRUCTIONS_AVAILABLE, PF_ARM_V8_CRC32_INSTRUCTIONS_AVAILABLE,
        // PF_ARM_V81_ATOMIC_INSTRUCTIONS_AVAILABLE
        30 => is_aarch64_feature_detected!("aes") && is_aarch64_feature_detected!("sha2"),
        31 => is_aarch64_feature_detected!("crc"),
        34 => is_aarch64_feature_detected!("lse"),
        _ => false,
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn is_present(_feature: u32) -> bool {
    false
}

/// `IsProcessorFeaturePresent`.
#[unsafe(no_mangle)]
pub extern "C" fn ndw_IsProcessorFeaturePresent(feature: u32) -> i32 {
    is_present(feature).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processors_features_are_those_that_the_kernel_lists() {
        let text = std::fs::read_to_string("/proc/cpuinfo").unwrap();
        let line =
            text.lines().find(|line| line.starts_with("flags") || line.starts_with("Features")).unwrap();
        let flags: Vec<&str> = line.split_whitespace().collect();
        let expected: &[(u32, &str)] = if cfg!(target_arch = "x86_64") {
            &[(14, "cx16"), (17, "xsave"), (28, "rdrand"), (32, "rdtscp"), (38, "sse4_2"), (40, "avx2")]
        } else {
            &[(31, "crc32"), (34, "atomics")]
        };
        for (feature, name) in expected {
            assert_eq!(ndw_IsProcessorFeaturePresent(*feature), flags.contains(name).into(), "{name}");
        }
        // One that was in a Pentium only, and none at all.
        assert_eq!((ndw_IsProcessorFeaturePresent(0), ndw_IsProcessorFeaturePresent(1000)), (0, 0));
        assert_eq!(ndw_IsProcessorFeaturePresent(12), 1);
    }
}
