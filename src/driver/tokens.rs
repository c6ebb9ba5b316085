//! Which request a record belongs to.

use std::rc::Rc;

use crate::http::Waiter;

/// Of records for which nobody waits.
pub const DETACHED: u64 = u64::MAX;

/// A slab: the low half of a token is the slot, the high half the slot's generation, so that a
/// token is never mistaken for a later one.
#[derive(Default)]
pub struct Tokens {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

struct Slot {
    generation: u32,
    entry: Option<Entry>,
}

struct Entry {
    waiter: Rc<Waiter>,
    /// Which of the request's records.
    record: usize,
}

impl Tokens {
    pub fn add(&mut self, waiter: &Rc<Waiter>, record: usize) -> u64 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, entry: None });
            (self.slots.len() - 1) as u32
        });
        let place = &mut self.slots[slot as usize];
        place.entry = Some(Entry { waiter: waiter.clone(), record });
        u64::from(place.generation) << 32 | u64::from(slot)
    }

    pub fn take(&mut self, token: u64) -> Option<(Rc<Waiter>, usize)> {
        let slot = token as u32;
        let place = self.slots.get_mut(slot as usize)?;
        if u64::from(place.generation) != token >> 32 {
            return None;
        }
        let entry = place.entry.take()?;
        // The last generation never comes, so that no token equals `DETACHED`.
        place.generation = (place.generation + 1) % u32::MAX;
        self.free.push(slot);
        Some((entry.waiter, entry.record))
    }

    pub fn take_all(&mut self) -> impl Iterator<Item = (Rc<Waiter>, usize)> + use<> {
        let slots = std::mem::take(self).slots;
        slots.into_iter().filter_map(|slot| slot.entry).map(|entry| (entry.waiter, entry.record))
    }
}
