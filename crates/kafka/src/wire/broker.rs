//! A broker's address, as Metadata and (KIP-951) Produce responses give it.

use super::{DecodeError, Encoding, Reader};

/// Where a broker listens, as it advertises itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broker {
    pub node_id: i32,
    pub host: String,
    /// Not checked to be a valid port.
    pub port: i32,
    pub rack: Option<String>,
}

impl Broker {
    pub(super) fn decode_array(
        reader: &mut Reader<'_>,
        encoding: Encoding,
    ) -> Result<Vec<Broker>, DecodeError> {
        let min_len = 4 + encoding.min_string() + 4 + encoding.min_string();
        let count = reader.array_len(encoding, min_len + encoding.min_tagged_fields())?;
        let mut brokers = Vec::with_capacity(count);
        for _ in 0..count {
            let broker = Broker {
                node_id: reader.i32()?,
                host: reader.string(encoding)?.to_owned(),
                port: reader.i32()?,
                rack: reader.nullable_string(encoding)?.map(str::to_owned),
            };
            reader.skip_tagged_fields(encoding)?;
            brokers.push(broker);
        }
        Ok(brokers)
    }
}
