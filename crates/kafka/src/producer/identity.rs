//! The producer id, by which brokers recognise copies of what they have already written (KIP-98).
//!
//! One id per producer; epochs and sequence numbers belong to each partition. A sequence that cannot
//! go on starts again under the next epoch, which every broker since 0.11 accepts without being
//! asked and which fences late copies under the old one (KIP-360).

use super::connection::RequestKind;
use super::{Producer, Timer};
use crate::error_code::ErrorCode;
use crate::negotiation::InitProducerIdVersion;
use crate::wire::{DecodeError, Reader, init_producer_id};
use crate::{Acks, Config, ConnId, Failure, FailureKind, Idempotence, Micros, Severity};

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// Records go without sequence numbers.
    Off,
    Wanted {
        retry_at: Micros,
        failures: u32,
    },
    Asked {
        failures: u32,
    },
    Known(i64),
    /// Demanded by the configuration, and not to be had.
    Unavailable(String),
}

#[derive(Debug)]
pub(super) struct Identity {
    state: State,
    /// Under which epoch the partitions of newly known topics begin.
    first_epoch: i16,
}

/// What a batch may be sent with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Usable {
    Plain,
    Idempotent(i64),
    /// Wait.
    NotYet,
    Never(String),
}

impl Identity {
    pub fn new(config: &Config) -> Self {
        let wanted = match config.idempotence {
            Idempotence::On => true,
            Idempotence::Auto => config.acks == Acks::All,
            Idempotence::Off => false,
        };
        let state = if wanted { State::Wanted { retry_at: 0, failures: 0 } } else { State::Off };
        Self { state, first_epoch: 0 }
    }

    pub fn usable(&self) -> Usable {
        match &self.state {
            State::Off => Usable::Plain,
            State::Known(id) => Usable::Idempotent(*id),
            State::Wanted { .. } | State::Asked { .. } => Usable::NotYet,
            State::Unavailable(reason) => Usable::Never(reason.clone()),
        }
    }

    pub fn is_off(&self) -> bool {
        self.state == State::Off
    }

    pub fn first_epoch(&self) -> i16 {
        self.first_epoch
    }

    /// Logs may have seen us under `epoch` in partitions that have been forgotten.
    pub fn raise_first_epoch(&mut self, epoch: i16) {
        match epoch.checked_add(1) {
            Some(next) => self.first_epoch = self.first_epoch.max(next),
            None => self.renew(),
        }
    }

    /// The epochs of this id are used up.
    pub fn renew(&mut self) {
        if let State::Known(_) = self.state {
            self.state = State::Wanted { retry_at: 0, failures: 0 };
            self.first_epoch = 0;
        }
    }

    /// The connection with the question was lost.
    pub fn cut_off(&mut self) {
        if let State::Asked { failures } = self.state {
            self.state = State::Wanted { retry_at: 0, failures };
        }
    }
}

impl Producer {
    pub(super) fn ask_for_identity(&mut self, now: Micros, timer: &mut Timer) {
        let State::Wanted { retry_at, failures } = self.identity.state else { return };
        if self.outstanding == 0 {
            return;
        }
        if now < retry_at {
            return timer.wake_at(retry_at);
        }
        let ready = self.connections.values_mut().filter(|c| c.takes_requests(now));
        let mut any_ready = false;
        let capable = ready.into_iter().find_map(|connection| {
            any_ready = true;
            let version = connection.negotiated()?.init_producer_id()?;
            Some((connection, version))
        });
        if let Some((connection, version)) = capable {
            let correlation_id = connection.next_correlation_id();
            let frame =
                init_producer_id::encode_request(version, correlation_id, &self.config.client_id);
            let deadline = now.saturating_add(self.config.request_timeout);
            connection.send(now, deadline, RequestKind::InitProducerId(version), true, [frame]);
            timer.wake_at(deadline);
            self.identity.state = State::Asked { failures };
        } else if any_ready {
            self.without_idempotence("the broker gives no producer ids (InitProducerId)");
        }
    }

    pub(super) fn on_producer_id(
        &mut self,
        now: Micros,
        conn: ConnId,
        version: InitProducerIdVersion,
        reader: &mut Reader<'_>,
    ) -> Result<(), DecodeError> {
        let response = init_producer_id::decode_response(reader, version);
        let State::Asked { failures } = self.identity.state else { return Ok(()) };
        let failures = failures + 1;
        let retry_at = now + self.config.retry_backoff.pause(failures, &mut self.random);
        self.identity.state = State::Wanted { retry_at, failures };
        let response = response?;
        self.throttled(now, conn, response.throttle_time_ms);
        match response.error_code {
            ErrorCode::NONE if response.producer_id >= 0 => {
                self.identity.state = State::Known(response.producer_id);
            }
            ErrorCode::CLUSTER_AUTHORIZATION_FAILED
            | ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            | ErrorCode::UNSUPPORTED_VERSION => {
                self.without_idempotence(&format!(
                    "the cluster refuses it: {}",
                    response.error_code
                ));
            }
            code => {
                let message = format!("no producer id yet: {code}; trying again");
                self.event(Severity::Info, "producer_id", message);
            }
        }
        Ok(())
    }

    /// Goes on without sequence numbers where the configuration leaves that open.
    pub(super) fn without_idempotence(&mut self, reason: &str) {
        if self.identity.is_off() {
            return;
        }
        if self.config.idempotence == Idempotence::On {
            let advice = "allow IDEMPOTENT_WRITE, or set \"idempotence auto\"";
            self.event(
                Severity::Error,
                "idempotence",
                format!("idempotence is on, but {reason}; {advice}"),
            );
            self.identity.state = State::Unavailable(reason.into());
            return;
        }
        let message = format!(
            "producing without idempotence, because {reason}; \
             a record whose fate is unknown is not sent again"
        );
        self.event(Severity::Warning, "idempotence", message);
        self.identity.state = State::Off;
    }

    /// Partitions whose sequence numbers cannot go on begin a new epoch once nothing is in flight.
    pub(super) fn settle_epochs(&mut self) {
        let due: Vec<_> = self
            .active
            .iter()
            .copied()
            .filter(|at| {
                self.partition(*at).is_some_and(|p| p.needs_new_epoch && p.in_flight.is_empty())
            })
            .collect();
        for at in due {
            // Also without idempotence: what may have been written is then still not sent again.
            if let Usable::Idempotent(producer_id) = self.identity.usable()
                && self.partition(at).is_some_and(|p| p.has_exhausted(producer_id))
            {
                self.identity.renew();
            }
            self.start_new_epoch(at);
        }
    }

    fn start_new_epoch(&mut self, at: super::PartitionRef) {
        let Some(partition) = self.partition_mut(at) else { return };
        for batch in partition.start_new_epoch() {
            let message = "the connection or the broker failed after the record had been sent, \
                           and the log has lost track of this producer";
            let failure = Failure::new(FailureKind::DeliveryTimeout, message);
            self.fail(at, batch, false, failure);
        }
        self.rest(at);
    }
}
