//! Reading the protocol's primitive types from bytes that nobody has checked.

use super::Encoding;

/// Why bytes are not what the protocol says they should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("{needed} bytes needed, {remaining} are left")]
    Truncated { needed: usize, remaining: usize },
    #[error("{0} bytes left over")]
    TrailingBytes(usize),
    #[error("a variable-length integer is too long")]
    VarintTooLong,
    #[error("length {0} is negative")]
    NegativeLength(i64),
    #[error("null where a value is required")]
    UnexpectedNull,
    #[error("{count} elements cannot fit into {remaining} bytes")]
    CountTooLarge { count: usize, remaining: usize },
    #[error("a string is not UTF-8")]
    NotUtf8,
    #[error("tagged field {tag} does not come after tagged field {previous}")]
    TagOrder { previous: u32, tag: u32 },
    #[error("the record batch has magic {0}, only 2 is understood")]
    Magic(i8),
    #[error("the CRC of the record batch is {computed:08x}, its header says {stored:08x}")]
    Crc { stored: u32, computed: u32 },
    #[error("the record batch header says {stated}, its contents are {actual}")]
    Inconsistent { stated: i64, actual: i64 },
}

/// A cursor over received bytes. Every method moves past what it returns; after an error the
/// position is unspecified.
///
/// Integers are big-endian. Nothing is copied: strings and bytes borrow from the input.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Bytes not yet read.
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Errs unless everything has been read.
    pub fn finish(&self) -> Result<(), DecodeError> {
        match self.rest.len() {
            0 => Ok(()),
            n => Err(DecodeError::TrailingBytes(n)),
        }
    }

    /// The next `n` bytes.
    pub fn take(&mut self, n: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self
            .rest
            .split_at_checked(n)
            .ok_or(DecodeError::Truncated { needed: n, remaining: self.rest.len() })?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (taken, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(DecodeError::Truncated { needed: N, remaining: self.rest.len() })?;
        self.rest = rest;
        Ok(*taken)
    }

    pub fn u8(&mut self) -> Result<u8, DecodeError> {
        self.array().map(|[byte]| byte)
    }

    pub fn i8(&mut self) -> Result<i8, DecodeError> {
        self.array().map(i8::from_be_bytes)
    }

    pub fn i16(&mut self) -> Result<i16, DecodeError> {
        self.array().map(i16::from_be_bytes)
    }

    pub fn i32(&mut self) -> Result<i32, DecodeError> {
        self.array().map(i32::from_be_bytes)
    }

    pub fn u32(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_be_bytes)
    }

    pub fn i64(&mut self) -> Result<i64, DecodeError> {
        self.array().map(i64::from_be_bytes)
    }

    /// Any byte but 0 is true, as the protocol guide says.
    pub fn bool(&mut self) -> Result<bool, DecodeError> {
        self.u8().map(|byte| byte != 0)
    }

    /// Two big-endian 64-bit halves; all zero means "none".
    pub fn uuid(&mut self) -> Result<[u8; 16], DecodeError> {
        self.array()
    }

    /// Base 128, least significant group first: at most 5 bytes.
    pub fn unsigned_varint(&mut self) -> Result<u32, DecodeError> {
        let value = self.base128(5)?;
        u32::try_from(value).map_err(|_| DecodeError::VarintTooLong)
    }

    /// Zig-zag: at most 5 bytes. Only record batches use it.
    pub fn varint(&mut self) -> Result<i32, DecodeError> {
        let value = self.unsigned_varint()?;
        Ok(((value >> 1) as i32) ^ -((value & 1) as i32))
    }

    /// Zig-zag: at most 10 bytes. Only record batches use it.
    pub fn varlong(&mut self) -> Result<i64, DecodeError> {
        let value = self.base128(10)?;
        Ok(((value >> 1) as i64) ^ -((value & 1) as i64))
    }

    fn base128(&mut self, max_bytes: u32) -> Result<u64, DecodeError> {
        let mut value = 0u64;
        for index in 0..max_bytes {
            let byte = self.u8()?;
            let group = u64::from(byte & 0x7f);
            let shift = 7 * index;
            // The tenth byte holds a single bit.
            if shift == 63 && group > 1 {
                return Err(DecodeError::VarintTooLong);
            }
            value |= group << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(DecodeError::VarintTooLong)
    }

    pub fn string(&mut self, encoding: Encoding) -> Result<&'a str, DecodeError> {
        self.nullable_string(encoding)?.ok_or(DecodeError::UnexpectedNull)
    }

    pub fn nullable_string(&mut self, encoding: Encoding) -> Result<Option<&'a str>, DecodeError> {
        let len = match encoding {
            Encoding::Classic => signed_len(self.i16()?.into())?,
            Encoding::Flexible => compact_len(self.unsigned_varint()?),
        };
        let Some(len) = len else { return Ok(None) };
        str::from_utf8(self.take(len)?).map(Some).map_err(|_| DecodeError::NotUtf8)
    }

    pub fn bytes(&mut self, encoding: Encoding) -> Result<&'a [u8], DecodeError> {
        self.nullable_bytes(encoding)?.ok_or(DecodeError::UnexpectedNull)
    }

    pub fn nullable_bytes(&mut self, encoding: Encoding) -> Result<Option<&'a [u8]>, DecodeError> {
        self.long_len(encoding)?.map(|len| self.take(len)).transpose()
    }

    /// The number of elements of an array, each of which takes at least `min_element` bytes: a count
    /// that the remaining bytes cannot hold is refused, so that allocating for it is safe.
    pub fn array_len(
        &mut self,
        encoding: Encoding,
        min_element: usize,
    ) -> Result<usize, DecodeError> {
        self.nullable_array_len(encoding, min_element)?.ok_or(DecodeError::UnexpectedNull)
    }

    /// As [`array_len`](Self::array_len), `None` for null.
    pub fn nullable_array_len(
        &mut self,
        encoding: Encoding,
        min_element: usize,
    ) -> Result<Option<usize>, DecodeError> {
        let Some(count) = self.long_len(encoding)? else { return Ok(None) };
        self.check_count(count, min_element)?;
        Ok(Some(count))
    }

    pub(crate) fn check_count(&self, count: usize, min_element: usize) -> Result<(), DecodeError> {
        if count > self.rest.len() / min_element.max(1) {
            return Err(DecodeError::CountTooLarge { count, remaining: self.rest.len() });
        }
        Ok(())
    }

    fn long_len(&mut self, encoding: Encoding) -> Result<Option<usize>, DecodeError> {
        match encoding {
            Encoding::Classic => signed_len(self.i32()?.into()),
            Encoding::Flexible => Ok(compact_len(self.unsigned_varint()?)),
        }
    }

    /// The end of a structure: nothing in the classic encoding, else tagged fields, all skipped.
    /// Brokers may put unknown ones into any structure (librdkafka#4278 crashed on that).
    pub fn skip_tagged_fields(&mut self, encoding: Encoding) -> Result<(), DecodeError> {
        self.tagged_fields(encoding, |_, _| Ok(()))
    }

    /// The end of a structure: calls `field` with the tag and the contents of each tagged field.
    /// Tags must be strictly increasing (KIP-482). `field` ignores the tags that it does not know.
    pub fn tagged_fields(
        &mut self,
        encoding: Encoding,
        mut field: impl FnMut(u32, Reader<'a>) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        if encoding == Encoding::Classic {
            return Ok(());
        }
        let count = self.unsigned_varint()? as usize;
        self.check_count(count, 2)?;
        let mut previous = None;
        for _ in 0..count {
            let tag = self.unsigned_varint()?;
            if let Some(previous) = previous.filter(|previous| *previous >= tag) {
                return Err(DecodeError::TagOrder { previous, tag });
            }
            previous = Some(tag);
            let size = self.unsigned_varint()? as usize;
            field(tag, Reader::new(self.take(size)?))?;
        }
        Ok(())
    }
}

fn signed_len(len: i64) -> Result<Option<usize>, DecodeError> {
    match len {
        -1 => Ok(None),
        _ => usize::try_from(len).map(Some).map_err(|_| DecodeError::NegativeLength(len)),
    }
}

fn compact_len(len_plus_one: u32) -> Option<usize> {
    len_plus_one.checked_sub(1).map(|len| len as usize)
}
