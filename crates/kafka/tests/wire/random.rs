//! Reproducible random values (xorshift64*).

pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 33) as usize % bound
    }

    pub fn bool(&mut self) -> bool {
        self.below(2) == 1
    }

    pub fn i16(&mut self) -> i16 {
        self.next() as i16
    }

    pub fn i32(&mut self) -> i32 {
        self.next() as i32
    }

    pub fn i64(&mut self) -> i64 {
        self.next() as i64
    }

    /// Lengths on both sides of where the compact encoding takes a second byte.
    pub fn len(&mut self) -> usize {
        [0, 1, 7, 126, 127, 128, 129, 300][self.below(8)]
    }

    pub fn text(&mut self) -> String {
        let len = self.len();
        (0..len).map(|_| ['a', '-', '.', 'ü', '語'][self.below(5)]).collect()
    }

    pub fn bytes(&mut self) -> Vec<u8> {
        let len = self.len();
        (0..len).map(|_| self.next() as u8).collect()
    }
}
