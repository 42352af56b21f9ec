//! Messages that are not about PyTorch's memory of a card: the host's, JAX's, TensorFlow's.

use crate::account::{Account, Tensor};
use crate::amount::Amount;

/// Types of TensorFlow, XLA and NumPy, with the bytes of an element.
const TYPES: [(&str, u64); 27] = [
    ("float", 4),
    ("float16", 2),
    ("float32", 4),
    ("float64", 8),
    ("double", 8),
    ("half", 2),
    ("bfloat16", 2),
    ("int64", 8),
    ("int32", 4),
    ("int16", 2),
    ("int8", 1),
    ("uint8", 1),
    ("bool", 1),
    ("complex64", 8),
    ("complex128", 16),
    ("f64", 8),
    ("f32", 4),
    ("f16", 2),
    ("bf16", 2),
    ("s64", 8),
    ("s32", 4),
    ("s16", 2),
    ("s8", 1),
    ("u32", 4),
    ("u8", 1),
    ("pred", 1),
    ("c64", 8),
];

/// The longest shape that is read.
const DIMENSIONS: usize = 16;

fn behind<'a>(window: &'a str, words: &str) -> Option<&'a str> {
    Some(&window[window.find(words)? + words.len()..])
}

fn amount_behind(window: &str, words: &str) -> Option<Amount> {
    Some(Amount::at(behind(window, words)?)?.0)
}

/// `[64,2016,9,9]`, and what follows it.
fn shape(text: &str) -> Option<(Vec<u64>, &str)> {
    let inner = text.strip_prefix('[')?;
    let end = inner.bytes().take(DIMENSIONS * 12).position(|byte| byte == b']')?;
    let sizes = inner[..end].split(',').filter(|size| !size.is_empty());
    let sizes: Option<Vec<u64>> = sizes.map(|size| size.parse().ok()).collect();
    let sizes = sizes.filter(|sizes| sizes.len() <= DIMENSIONS)?;
    Some((sizes, &inner[end + 1..]))
}

fn tensor(shape: Vec<u64>, dtype: &str) -> Tensor {
    let known = TYPES.iter().find(|(name, _)| *name == dtype);
    Tensor { shape, dtype: dtype.to_owned(), element_bytes: known.map(|(_, bytes)| *bytes) }
}

/// `DefaultCPUAllocator: can't allocate memory: you tried to allocate 132426121216 bytes`, and NumPy's
/// `Unable to allocate 7.45 GiB for an array with shape (1000, 1000000) and data type float64`.
pub(crate) fn fill_host(account: &mut Account, window: &str) {
    account.figures.tried = amount_behind(window, "triedtoallocate");
    if let Some(array) = behind(window, "arraywithshape(") {
        let sizes = array.split(')').next().unwrap_or_default();
        let dtype = behind(array, "anddatatype").unwrap_or_default();
        let dtype: String =
            dtype.chars().take(12).take_while(char::is_ascii_alphanumeric).collect();
        let bracketed =
            format!("[{}]", sizes.get(..sizes.len().min(DIMENSIONS * 12)).unwrap_or_default());
        account.tensor = shape(&bracketed).map(|(sizes, _)| tensor(sizes, &dtype));
        account.figures.tried = amount_behind(window, "unabletoallocate");
    }
    if window.starts_with("insufficientsharedmemory") {
        account.who = "shared memory".to_owned();
    }
}

/// `Out of memory while trying to allocate 6291456 bytes`, and the first of XLA's peak buffers.
pub(crate) fn fill_jax(account: &mut Account, window: &str) {
    let ways = [
        "whiletryingtoallocate",
        "outofmemoryallocating",
        "failedtoallocaterequestfor",
        "tryingtoallocate",
    ];
    let said = ways.iter().find_map(|way| behind(window, way)).unwrap_or_default();
    if let Some((rounded, length)) = Amount::at(said) {
        // `2.99GiB (3206250496B)`, `1.25TiB (rounded to 1374521760000)`
        let rest = said[length..].strip_prefix('(').unwrap_or_default();
        let rest = rest.strip_prefix("roundedto").unwrap_or(rest);
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let exact = rest[..digits].parse().ok().map(Amount::exactly);
        account.figures.tried = Some(exact.unwrap_or(rounded));
    }
    account.tensor = behind(window, "shape:").and_then(|text| {
        let dtype = &text[..text.bytes().take(12).position(|byte| byte == b'[')?];
        let (shape, _) = shape(&text[dtype.len()..])?;
        Some(tensor(shape, dtype))
    });
}

/// `OOM when allocating tensor with shape[64,2016,9,9] and type float on /job:…/device:GPU:0`
pub(crate) fn fill_tensorflow(account: &mut Account, window: &str) {
    let Some((shape, rest)) = behind(window, "tensorwithshape").and_then(shape) else { return };
    let dtype = behind(rest, "andtype").unwrap_or_default();
    let dtype = dtype.split("on/").next().unwrap_or_default();
    account.tensor = Some(tensor(shape, dtype.get(..dtype.len().min(16)).unwrap_or_default()));
    let device = behind(rest, "device:").unwrap_or_default();
    if device.starts_with("cpu") {
        account.who = "host".to_owned();
    }
    let digits = device.strip_prefix("gpu:").unwrap_or_default();
    let end = digits.bytes().take_while(u8::is_ascii_digit).count();
    account.device = digits[..end].parse().ok();
}
