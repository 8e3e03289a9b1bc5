//! Interface identifiers, exported as the `IID_*` objects that C programs link against.

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
    const fn new(value: u128) -> Guid {
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
    /// `IUnknown`
    IID_IUnknown = 0x00000000_0000_0000_C000_000000000046;
    /// `IClassFactory`
    IID_IClassFactory = 0x00000001_0000_0000_C000_000000000046;
    /// `IND2Provider`
    IID_IND2Provider = 0x49EAE6C1_76C4_46D0_8003_5C2EAA2C9A8E;
    /// `IND2Adapter`
    IID_IND2Adapter = 0xD89C798C_4823_4D69_846C_DFDCCFF9E5F3;
    /// `IND2Overlapped`
    IID_IND2Overlapped = 0xABF72719_B016_4A40_A6F7_622791A7044C;
    /// `IND2CompletionQueue`
    IID_IND2CompletionQueue = 0x20CC445E_64A0_4CBB_AA75_F6A7251FDA9E;
    /// `IND2SharedReceiveQueue`
    IID_IND2SharedReceiveQueue = 0xAABD67DC_459A_4DB1_826B_56CFCC278883;
    /// `IND2MemoryRegion`
    IID_IND2MemoryRegion = 0x55DFEA2F_BC56_4982_8A45_0301BE46C413;
    /// `IND2MemoryWindow` (the id is that of ND v1's `INDMemoryWindow` too)
    IID_IND2MemoryWindow = 0x070FE1F5_0AB5_4361_88DB_974BA704D4B9;
    /// `IND2QueuePair`
    IID_IND2QueuePair = 0xEEF2F332_B75D_4063_BCE3_3A0BAD2D02CE;
    /// `IND2Connector`
    IID_IND2Connector = 0x7DD615C4_6B4C_4866_950C_F3B1D25A5302;
    /// `IND2Listener`
    IID_IND2Listener = 0x65D23D83_3A57_4E02_86A4_350165C2D130;
    /// `INDCompatAdapter` (`ndendpoint.h`)
    IID_INDCompatAdapter = 0x1391109C_D0E3_4A8F_9004_F167E96C17E3;
    /// `INDCompatSharedEndpoint` (`ndendpoint.h`)
    IID_INDCompatSharedEndpoint = 0xF1CB7DB9_0623_47E9_9E9A_EC93154E03D2;
    /// `INDCompatConnector` (`ndendpoint.h`)
    IID_INDCompatConnector = 0xCBED1ED1_5C9B_42EC_B186_5E61FEC90A18;
    /// `INDCompatListener` (`ndendpoint.h`)
    IID_INDCompatListener = 0x84D033DB_41AB_42E9_BA16_884EA5CAAA38;
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
        assert_eq!(
            (IID_IND2Adapter.data1, IID_IND2Adapter.data2, IID_IND2Adapter.data3),
            (0xD89C798C, 0x4823, 0x4D69)
        );
        assert_eq!(IID_IND2Adapter.data4, [0x84, 0x6C, 0xDF, 0xDC, 0xCF, 0xF9, 0xE5, 0xF3]);
        assert_eq!(size_of::<Guid>(), 16);
        assert_eq!(align_of::<Guid>(), 4);
    }
}
