//! Which partition a key belongs to.

use crate::Partitioner;

/// The hash of the Java client's default partitioner: MurmurHash2, seed 0x9747b28c, over unsigned
/// bytes in little-endian words.
pub fn murmur2(data: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    const R: u32 = 24;
    let mut h = 0x9747_b28c ^ data.len() as u32;
    let mut words = data.chunks_exact(4);
    for word in &mut words {
        let mut k = u32::from_le_bytes([word[0], word[1], word[2], word[3]]).wrapping_mul(M);
        k ^= k >> R;
        h = h.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    let tail = words.remainder();
    if !tail.is_empty() {
        for (i, byte) in tail.iter().enumerate() {
            h ^= u32::from(*byte) << (8 * i);
        }
        h = h.wrapping_mul(M);
    }
    h ^= h >> 13;
    h = h.wrapping_mul(M);
    h ^ (h >> 15)
}

impl Partitioner {
    /// The partition of a key among `count` partitions, those without a leader included: a key
    /// must not move because a broker is down. `None` where keys do not matter.
    pub(super) fn partition(self, key: &[u8], count: usize) -> Option<usize> {
        let count = u32::try_from(count).ok().filter(|n| *n > 0)?;
        match self {
            // Java masks the sign bit; neither the absolute value nor an unsigned modulo agrees.
            Partitioner::Murmur2 => Some(((murmur2(key) & 0x7fff_ffff) % count) as usize),
            Partitioner::Crc32 => Some((crc32fast::hash(key) % count) as usize),
            Partitioner::Random => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_land_where_the_java_client_puts_them() {
        let vectors: serde_json::Value =
            serde_json::from_str(include_str!("../../tests/vectors/murmur2.json")).unwrap();
        let vectors = vectors.as_array().unwrap();
        assert_eq!(vectors.len(), 27);
        for vector in vectors {
            let key = hex::decode(vector["key_hex"].as_str().unwrap()).unwrap();
            let hash = vector["murmur2_i32"].as_i64().unwrap() as i32;
            assert_eq!(murmur2(&key) as i32, hash, "{vector}");
            for count in [1usize, 3, 12, 100] {
                let expected = vector[format!("partition_of_{count}")].as_u64().unwrap() as usize;
                assert_eq!(Partitioner::Murmur2.partition(&key, count), Some(expected));
            }
        }
    }

    /// The check value of CRC-32/ISO-HDLC, which librdkafka's `rd_crc32` computes.
    #[test]
    fn crc32_is_the_one_of_librdkafka() {
        assert_eq!(
            Partitioner::Crc32.partition(b"123456789", 1000),
            Some((0xcbf4_3926u32 % 1000) as usize)
        );
    }

    #[test]
    fn random_ignores_keys() {
        assert_eq!(Partitioner::Random.partition(b"k", 3), None);
    }
}
