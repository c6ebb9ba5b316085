//! Versions that are known to be spoken by both sides.

macro_rules! version {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(i16);

        impl $name {
            pub(super) fn new(version: i16) -> Self {
                Self(version)
            }

            /// For tests, simulations and fuzzers only: a version that nobody negotiated.
            #[doc(hidden)]
            pub fn assume(version: i16) -> Self {
                Self(version)
            }

            pub fn get(self) -> i16 {
                self.0
            }
        }
    };
}

version! {
    /// 3 to 13.
    ProduceVersion
}

version! {
    /// 1 to 13.
    MetadataVersion
}

version! {
    /// 0 to 5.
    InitProducerIdVersion
}

impl ProduceVersion {
    /// From 7 on (2.1, KIP-110).
    pub fn allows_zstd(self) -> bool {
        self.0 >= 7
    }

    /// From 13 on topics go by their id and have no name (4.1, KIP-516).
    pub fn uses_topic_ids(self) -> bool {
        self.0 >= 13
    }

    /// For a request with a topic whose id is not known: the highest version with names. Never above
    /// what was negotiated; brokers that have 13 have 12 too.
    pub fn without_topic_ids(self) -> ProduceVersion {
        ProduceVersion(self.0.min(12))
    }
}
