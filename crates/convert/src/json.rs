//! JSON strings from arbitrary bytes.

/// Appends a JSON string. Bytes that are not UTF-8 become U+FFFD; `/` and all other characters but
/// the controls stay as they are.
pub(crate) fn push_string(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    for chunk in text.utf8_chunks() {
        for byte in chunk.valid().bytes() {
            push_byte(out, byte);
        }
        if !chunk.invalid().is_empty() {
            out.extend_from_slice("\u{fffd}".as_bytes());
        }
    }
    out.push(b'"');
}

fn push_byte(out: &mut Vec<u8>, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let short = match byte {
        b'"' => b'"',
        b'\\' => b'\\',
        0x08 => b'b',
        0x0c => b'f',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x00..0x20 => {
            out.extend_from_slice(b"\\u00");
            out.push(HEX[usize::from(byte >> 4)]);
            out.push(HEX[usize::from(byte & 15)]);
            return;
        }
        other => return out.push(other),
    };
    out.extend_from_slice(&[b'\\', short]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(text: &[u8]) -> String {
        let mut out = Vec::new();
        push_string(&mut out, text);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn controls_are_escaped_and_nothing_else_needs_it() {
        assert_eq!(string(b""), r#""""#);
        assert_eq!(string(b"a/b \x7f"), "\"a/b \x7f\"");
        assert_eq!(string(b"\"\\\x08\x0c\n\r\t"), r#""\"\\\b\f\n\r\t""#);
        assert_eq!(string(b"\x00\x01\x1b\x1f"), r#""\u0000\u0001\u001b\u001f""#);
        assert_eq!(string("größe €😀".as_bytes()), "\"größe €😀\"");
    }

    #[test]
    fn what_is_not_utf8_is_replaced() {
        assert_eq!(string(b"a\xffb"), "\"a\u{fffd}b\"");
        assert_eq!(string(b"\xe2\x82"), "\"\u{fffd}\"");
        assert_eq!(string(b"\xed\xa0\x80").chars().filter(|c| *c == '\u{fffd}').count(), 3);
    }
}
