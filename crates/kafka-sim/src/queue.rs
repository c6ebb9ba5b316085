//! Events in the order of their time; those of one time in the order of their scheduling.

use std::collections::BTreeMap;

use kafka::Micros;

#[derive(Debug)]
pub struct Queue<E> {
    events: BTreeMap<(Micros, u64), E>,
    next_tie: u64,
}

impl<E> Default for Queue<E> {
    fn default() -> Self {
        Self { events: BTreeMap::new(), next_tie: 0 }
    }
}

impl<E> Queue<E> {
    pub fn push(&mut self, at: Micros, event: E) {
        self.events.insert((at, self.next_tie), event);
        self.next_tie += 1;
    }

    pub fn pop(&mut self) -> Option<(Micros, E)> {
        self.events.pop_first().map(|((at, _), event)| (at, event))
    }
}
