//! `tests/vectors`: frames serialised by Kafka 4.3.1's own classes, and answers recorded from brokers.

use bytes::Bytes;
use kafka::wire::{ApiKey, FrameDecoder, Reader, response_header};
use serde_json::Value;

pub const API_VERSIONS: &str = include_str!("../vectors/apiversions.json");
pub const METADATA: &str = include_str!("../vectors/metadata.json");
pub const PRODUCE: &str = include_str!("../vectors/produce_v3_v13.json");
pub const INIT_PRODUCER_ID: &str = include_str!("../vectors/init_producer_id.json");
pub const RECORD_BATCHES: &str = include_str!("../vectors/record_batches.json");
pub const VARINTS: &str = include_str!("../vectors/varints.json");
pub const ERROR_CODES: &str = include_str!("../vectors/error_codes.json");
pub const CAPTURED: &str = include_str!("../vectors/captured_responses.json");

pub fn entries(json: &str) -> Vec<Value> {
    serde_json::from_str(json).unwrap()
}

pub fn entry(json: &str, name: &str) -> Value {
    entries(json).into_iter().find(|entry| entry["name"] == name).unwrap()
}

/// The vectors of one direction and of the versions that are spoken here.
pub fn frames(json: &str, direction: &str) -> Vec<Vector> {
    entries(json)
        .iter()
        .filter(|entry| entry["direction"] == direction)
        .map(Vector::new)
        .filter(|vector| vector.is_spoken())
        .collect()
}

#[derive(Debug, Clone)]
pub struct Vector {
    pub name: String,
    pub api: ApiKey,
    pub version: i16,
    pub correlation_id: i32,
    pub client_id: String,
    pub json: Value,
    /// With its length.
    pub frame: Vec<u8>,
}

impl Vector {
    fn new(entry: &Value) -> Self {
        Self {
            name: entry["name"].as_str().unwrap().into(),
            api: api(entry["api"].as_str().unwrap()),
            version: int(&entry["api_version"]) as i16,
            correlation_id: int(&entry["correlation_id"]) as i32,
            client_id: entry["client_id"].as_str().unwrap_or_default().into(),
            json: entry["body"].clone(),
            frame: bytes(&entry["frame_hex"]),
        }
    }

    fn is_spoken(&self) -> bool {
        match self.api {
            ApiKey::ApiVersions => [0, 3].contains(&self.version),
            _ => kafka::negotiation::supported(self.api).contains(self.version),
        }
    }

    /// The body behind the response header, whose correlation id is checked.
    pub fn response_body(&self) -> Bytes {
        let (correlation_id, body) = split_response(&self.frame, self.api, self.version);
        assert_eq!(correlation_id, self.correlation_id, "{}", self.name);
        body
    }
}

/// A whole response frame into correlation id and body.
pub fn split_response(frame: &[u8], api: ApiKey, version: i16) -> (i32, Bytes) {
    let mut decoder = FrameDecoder::new(1 << 20);
    decoder.push(frame);
    let frame = decoder.next_frame().unwrap().unwrap();
    assert_eq!(decoder.next_frame(), Ok(None));
    let mut reader = Reader::new(&frame);
    let correlation_id = response_header::decode(&mut reader, api, version).unwrap();
    (correlation_id, frame.slice(frame.len() - reader.remaining()..))
}

pub fn api(name: &str) -> ApiKey {
    match name {
        "PRODUCE" => ApiKey::Produce,
        "METADATA" => ApiKey::Metadata,
        "API_VERSIONS" => ApiKey::ApiVersions,
        "INIT_PRODUCER_ID" => ApiKey::InitProducerId,
        other => panic!("no vectors of {other}"),
    }
}

pub fn int(value: &Value) -> i64 {
    value.as_i64().unwrap()
}

/// As [`int`], or what the protocol says where the version has no such field.
pub fn int_or(value: &Value, default: i64) -> i64 {
    if value.is_null() { default } else { int(value) }
}

pub fn string(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

pub fn bytes(hex_text: &Value) -> Vec<u8> {
    hex::decode(hex_text.as_str().unwrap()).unwrap()
}

/// Kafka prints topic ids as base64 for URLs, without padding; none is zero.
pub fn topic_id(value: &Value) -> [u8; 16] {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut id = [0u8; 16];
    for (index, digit) in value.as_str().unwrap_or_default().bytes().enumerate() {
        let digit = ALPHABET.iter().position(|known| *known == digit).unwrap();
        for bit in 0..6 {
            let at = index * 6 + bit;
            if digit & (0x20 >> bit) != 0 {
                id[at / 8] |= 0x80 >> (at % 8);
            }
        }
    }
    id
}
