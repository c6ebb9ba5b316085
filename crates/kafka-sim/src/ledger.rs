//! What the caller knows: each record it handed over, and how it was told that it ended.

use std::collections::BTreeMap;

use kafka::{Completion, Delivery, Failure, FailureKind, Micros};

use crate::violation::Invariant;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Written { offset: Option<i64> },
    NotWritten(Failure),
    Ambiguous(Failure),
    Rejected(Failure),
}

#[derive(Debug)]
pub struct Done {
    pub outcome: Outcome,
    pub partition: Option<i32>,
}

#[derive(Debug)]
pub struct Entry {
    pub topic: usize,
    pub hash: u64,
    pub partition: Option<i32>,
    pub appended_at: Micros,
    /// The model brokers refuse it.
    pub poisoned: bool,
    pub done: Option<Done>,
}

/// Indexed by token.
#[derive(Debug, Default)]
pub struct Ledger {
    pub entries: Vec<Entry>,
    pub outstanding: usize,
    pub written: u64,
    topics: BTreeMap<String, usize>,
}

impl Ledger {
    pub fn new<'a>(topics: impl Iterator<Item = &'a str>) -> Self {
        let topics = topics.enumerate().map(|(index, name)| (name.to_owned(), index)).collect();
        Self { topics, ..Self::default() }
    }

    pub fn next_token(&self) -> u64 {
        self.entries.len() as u64
    }

    pub fn get(&self, token: u64) -> Option<&Entry> {
        self.entries.get(token as usize)
    }

    pub fn is_done(&self, token: u64) -> bool {
        self.get(token).is_none_or(|entry| entry.done.is_some())
    }

    pub fn accept(&mut self, entries: Vec<Entry>) {
        self.outstanding += entries.len();
        self.entries.extend(entries);
    }

    /// `latest` is how long after its append a record may end.
    pub fn complete(
        &mut self,
        now: Micros,
        completion: &Completion,
        latest: Micros,
    ) -> Result<(), (Invariant, String)> {
        let topic = self.topics.get(&*completion.topic).copied();
        if completion.tokens.is_empty() {
            return Err((Invariant::I1, "a completion without records".into()));
        }
        for (index, token) in completion.tokens.iter().enumerate() {
            let Some(entry) = self.entries.get_mut(*token as usize) else {
                return Err((Invariant::I1, format!("token {token} was never accepted")));
            };
            if let Some(done) = &entry.done {
                let what = format!("token {token} completed twice: {done:?}, then {completion:?}");
                return Err((Invariant::I1, what));
            }
            let elsewhere = entry.partition.is_some_and(|p| completion.partition != Some(p));
            if topic != Some(entry.topic) || (completion.partition.is_some() && elsewhere) {
                let what = format!("token {token}: wrong topic or partition in {completion:?}");
                return Err((Invariant::I1, what));
            }
            if now > entry.appended_at + latest {
                let age = now - entry.appended_at;
                let what = format!("token {token} took {age} µs to end: {:?}", completion.delivery);
                return Err((Invariant::I11, what));
            }
            let outcome = outcome(&completion.delivery, index);
            if let Some(what) = implausible(&outcome) {
                return Err((Invariant::I3, format!("token {token}: {what}: {outcome:?}")));
            }
            self.written += u64::from(matches!(outcome, Outcome::Written { .. }));
            entry.done = Some(Done { outcome, partition: completion.partition });
            self.outstanding -= 1;
        }
        Ok(())
    }
}

fn outcome(delivery: &Delivery, index: usize) -> Outcome {
    match delivery {
        Delivery::Written { base_offset, .. } => {
            Outcome::Written { offset: base_offset.map(|base| base + index as i64) }
        }
        Delivery::NotWritten(failure) => Outcome::NotWritten(failure.clone()),
        Delivery::Ambiguous(failure) => Outcome::Ambiguous(failure.clone()),
        Delivery::Rejected(failure) => Outcome::Rejected(failure.clone()),
    }
}

/// Pairs of outcome and reason that contradict each other.
fn implausible(outcome: &Outcome) -> Option<&'static str> {
    match outcome {
        Outcome::Written { offset: Some(offset) } if *offset < 0 => Some("a negative offset"),
        Outcome::Ambiguous(f) if f.kind == FailureKind::Cancelled => {
            Some("cancelled after sending")
        }
        _ => None,
    }
}
