//! A record batch, decoded; what decodes survives re-encoding and splitting.
#![no_main]

use kafka::record_batch::{BatchBuilder, BatchHeader, RecordView, Records};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    // The CRC would hide most of the records from the fuzzer.
    let _ = BatchHeader::decode(data);
    let Some((header, records)) = data.split_first_chunk::<61>() else { return };

    // The lowest byte of the header's count.
    let count = i32::from(header[60]);
    let decoded: Result<Vec<RecordView>, _> = Records::new(records, 0, count).collect();
    let Ok(decoded) = decoded else { return };
    let mut builder = BatchBuilder::new();
    for record in &decoded {
        builder.push(record.timestamp_ms, record.key, record.value, &record.headers);
    }
    let batch = builder.finish();
    assert_eq!(batch.count as usize, decoded.len());
    for (again, record) in batch.iter().zip(&decoded) {
        let again = again.unwrap();
        assert_eq!((again.timestamp_ms, again.key), (record.timestamp_ms, record.key));
        assert_eq!((again.value, &again.headers), (record.value, &record.headers));
    }
    if let Some((first, second)) = batch.split() {
        assert_eq!(first.count + second.count, batch.count);
    }
});
