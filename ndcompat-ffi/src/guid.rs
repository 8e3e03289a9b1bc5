//! `GUID`, and the ids of interfaces that this library does not implement; the others are in `interfaces`. All are exported
//! as the `IID_*` objects that C programs link against.

/// A Windows `GUID`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Guid {
    pub(crate) data1: u32,
    pub(crate) data2: u16,
    pub(crate) data3: u16,
    pub(crate) data4: [u8; 8],
}

impl Guid {
    pub(crate) const fn new(value: u128) -> Guid {
        Guid {
            data1: (value >> 96) as u32,
            data2: (value >> 80) as u16,
            data3: (value >> 64) as u16,
            data4: (value as u64).to_be_bytes(),
        }
    }
}

macro_rules! interface_ids {
    ($($(#[$doc:meta])* $name:ident = $value:literal;)*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        #[allow(non_upper_case_globals)]
        pub static $name: Guid = Guid::new($value);
    )*};
}

interface_ids! {
    /// No interface.
    GUID_NULL = 0;
    /// `INDOverlapped` of ND v1
    IID_INDOverlapped = 0xC859E15E_75E2_4FE3_8D6D_0DFF36F02442;
    /// `INDProvider` of ND v1
    IID_INDProvider = 0x0C5DD316_5FDF_47E6_B2D0_2A6EDA8D39DD;
    /// `INDAdapter` of ND v1
    IID_INDAdapter = 0xA023C5A0_5B73_43BC_8D20_33AA07E9510F;
    /// `INDCompletionQueue` of ND v1
    IID_INDCompletionQueue = 0x1245A633_2A32_473A_830C_E05D1F869D02;
    /// `INDMemoryWindow` of ND v1
    IID_INDMemoryWindow = 0x070FE1F5_0AB5_4361_88DB_974BA704D4B9;
    /// `INDEndpoint` of ND v1
    IID_INDEndpoint = 0xDBD00EAB_B679_44A9_BD65_E82F3DE12D1A;
    /// `INDConnector` of ND v1
    IID_INDConnector = 0x1BCAF2D1_E274_4AEB_AC57_CD5D4376E0B7;
    /// `INDListen` of ND v1
    IID_INDListen = 0xBB902588_BA3F_4441_9FE1_3B6795E4E668;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_where_windows_has_them() {
        let id = IID_INDListen;
        assert_eq!((id.data1, id.data2, id.data3), (0xBB902588, 0xBA3F, 0x4441));
        assert_eq!(id.data4, [0x9F, 0xE1, 0x3B, 0x67, 0x95, 0xE4, 0xE6, 0x68]);
        assert_eq!(size_of::<Guid>(), 16);
        assert_eq!(align_of::<Guid>(), 4);
    }
}
