//! Texts that tell of a tensor: `float32[512, 512]`.

/// Dtype and shape; nothing if it is written otherwise.
pub(crate) fn dtype_and_shape(text: &str) -> (String, Vec<u64>) {
    let parsed = || {
        let (dtype, rest) = text.split_once('[')?;
        let inner = rest.strip_suffix(']')?;
        let parts = inner.split(',').map(str::trim).filter(|part| !part.is_empty());
        let shape: Option<Vec<u64>> = parts.map(|part| part.parse().ok()).collect();
        Some((dtype.to_owned(), shape?))
    };
    parsed().unwrap_or_default()
}

/// How many bytes its elements take; `None` if the text is no tensor.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let (dtype, shape) = dtype_and_shape(text);
    shape.iter().try_fold(element_bytes(&dtype)?, |all, size| all.checked_mul(*size))
}

/// Bytes of one element: names of dtypes say their bits, but for `bool`.
fn element_bytes(dtype: &str) -> Option<u64> {
    let bits = dtype.trim_start_matches(|c: char| !c.is_ascii_digit());
    let end = bits.find(|c: char| !c.is_ascii_digit()).unwrap_or(bits.len());
    match (dtype, bits[..end].parse::<u64>()) {
        ("bool", _) => Some(1),
        (_, Ok(bits)) if 8 <= bits => Some(bits / 8),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dtypes_and_shapes_are_read() {
        assert_eq!(dtype_and_shape("float32[2, 3]"), ("float32".to_owned(), vec![2, 3]));
        assert_eq!(dtype_and_shape("int64[]"), ("int64".to_owned(), vec![]));
        for text in ["", "float32", "float32[a]", "float32[2"] {
            assert_eq!(dtype_and_shape(text), (String::new(), vec![]), "{text}");
        }
    }

    #[test]
    fn sizes_follow_from_dtype_and_shape() {
        let sizes = ["float32[2, 3]", "bfloat16[4]", "bool[5]", "complex64[1]", "float8_e4m3fn[7]"];
        assert_eq!(sizes.map(bytes), [Some(24), Some(8), Some(5), Some(8), Some(7)]);
        for text in ["", "encoder.weight", "quantized[3]", "float32[18446744073709551615, 9]"] {
            assert_eq!(bytes(text), None, "{text}");
        }
    }
}
