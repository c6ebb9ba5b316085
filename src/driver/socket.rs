//! The producer's connections.

use std::net::SocketAddr;
use std::rc::{Rc, Weak};

use kafka::{ConnId, Input, Micros, Producer};

use super::Driver;
use crate::event::connection::{Connection, Owner, Read};

/// Buffers read per event: one broker must not keep the worker from everything else.
const READS: usize = 16;

impl Driver {
    pub(super) fn connect(&self, conn: ConnId, addr: &SocketAddr) {
        let owner = self.this.clone() as Weak<dyn Owner>;
        let input = match Connection::open(conn, addr, owner, self.nginx_log.get()) {
            Ok(connection) => {
                let established = connection.is_established();
                self.connections.borrow_mut().push(connection);
                if !established {
                    return;
                }
                Input::Connected { conn }
            }
            Err(reason) => Input::Closed { conn, reason },
        };
        self.inbox.borrow_mut().push(input);
    }

    pub(super) fn connection(&self, conn: ConnId) -> Option<Rc<Connection>> {
        self.connections.borrow().iter().find(|one| one.id() == conn).cloned()
    }

    /// It is closed when the last one lets go of it.
    pub(super) fn take_connection(&self, conn: ConnId) -> Option<Rc<Connection>> {
        let mut connections = self.connections.borrow_mut();
        let index = connections.iter().position(|one| one.id() == conn)?;
        Some(connections.swap_remove(index))
    }

    fn closed(&self, producer: &mut Producer, now: Micros, conn: ConnId, reason: String) {
        if self.take_connection(conn).is_some() {
            producer.handle(now, Input::Closed { conn, reason });
        }
    }

    /// Some: why the connection is over.
    fn read(
        &self,
        connection: &Connection,
        producer: &mut Producer,
        now: Micros,
    ) -> Result<(), String> {
        let mut buffer = self.read_buffer.borrow_mut();
        for _ in 0..READS {
            match connection.read(&mut buffer) {
                Read::Bytes(n) => {
                    let bytes = &buffer[..n];
                    producer.handle(now, Input::Received { conn: connection.id(), bytes });
                }
                Read::Again => return connection.await_readable(),
                Read::Closed(reason) => return Err(reason),
            }
        }
        connection.post_read();
        Ok(())
    }

    fn write(
        &self,
        connection: &Connection,
        producer: &mut Producer,
        now: Micros,
    ) -> Result<(), String> {
        let conn = connection.id();
        while connection.is_writable() {
            let bytes = connection.write(producer.transmit(conn))?;
            if bytes == 0 {
                break;
            }
            producer.handle(now, Input::Transmitted { conn, bytes });
        }
        connection.await_writable()
    }
}

impl Owner for Driver {
    fn established(&self, conn: ConnId) {
        self.run(|producer, now| producer.handle(now, Input::Connected { conn }));
    }

    fn readable(&self, conn: ConnId) {
        let Some(connection) = self.connection(conn) else { return };
        self.run(|producer, now| {
            if let Err(reason) = self.read(&connection, producer, now) {
                self.closed(producer, now, conn, reason);
            }
        });
    }

    fn writable(&self, conn: ConnId) {
        let Some(connection) = self.connection(conn) else { return };
        self.run(|producer, now| {
            if let Err(reason) = self.write(&connection, producer, now) {
                // A broker that has closed may have answered before: those answers count.
                let _ = self.read(&connection, producer, now);
                self.closed(producer, now, conn, reason);
            }
        });
    }

    fn failed(&self, conn: ConnId, reason: String) {
        self.run(|producer, now| self.closed(producer, now, conn, reason));
    }

    fn shut_down(&self) {
        self.run(|producer, now| producer.close(now, now));
    }
}
