//! How often the producer knocks (I12).

use kafka::{Config, Micros, SECOND};

#[derive(Debug, Default)]
pub struct Traffic {
    pub connects: Vec<Micros>,
    pub metadata: Vec<Micros>,
    pub producer_ids: Vec<Micros>,
    pub idle_timers_since: Micros,
}

const WINDOW: Micros = 10 * SECOND;

impl Traffic {
    /// While something has been broken for long, the last `WINDOW` before `until` must be quiet.
    /// `endpoints` is how many addresses there are to knock at.
    pub fn check(
        &self,
        config: &Config,
        until: Micros,
        endpoints: usize,
        topics: usize,
    ) -> Result<(), String> {
        let within = |times: &[Micros]| {
            times.iter().filter(|at| (until - WINDOW..until).contains(at)).count() as u64
        };
        // A caller's demand may probe an unreachable cluster every two seconds.
        let reconnect = config.reconnect_backoff.max.min(2 * SECOND);
        // However many topics fail, they are asked for together; but each new connection may ask.
        // Callers who insist on a missing topic cost two questions a second.
        let insisting = 2 * topics as u64 * WINDOW / SECOND;
        let metadata = per_window(config.retry_backoff.min) + within(&self.connects) + insisting;
        let producer_ids = per_window(config.retry_backoff.max);
        let limits = [
            ("connects", within(&self.connects), endpoints as u64 * per_window(reconnect)),
            ("Metadata requests", within(&self.metadata), metadata),
            ("InitProducerId requests", within(&self.producer_ids), producer_ids),
        ];
        for (what, count, limit) in limits {
            if count > limit {
                return Err(format!("{count} {what} in ten seconds, limit {limit}"));
            }
        }
        Ok(())
    }
}

/// Attempts with this pause between, which jitter may make shorter by a fifth.
fn per_window(pause: Micros) -> u64 {
    WINDOW * 5 / (4 * pause) + 2
}
