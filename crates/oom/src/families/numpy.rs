//! NumPy: `Unable to allocate 7.45 GiB for an array with shape (1000, 1000000) and data type float64`.

use super::{Family, Head, Memory, Window, reading, step};
use crate::account::{Account, Kind};

pub(super) const FAMILY: Family = Family {
    id: "numpy",
    speaker: "NumPy",
    kind: Kind::Host,
    memory: Memory::Host,
    means: "the machine, or the limit of its container, has too little memory for this array",
    facts: &[],
    raises: true,
    heads: &[Head {
        words: "unabletoallocate",
        near: 0,
        // Others say so too, with other words behind.
        fits: |place| {
            reading::behind(place.rest, "unabletoallocate").is_some()
                || place.near(80).contains("arraywithshape")
        },
    }],
    fill,
    steps: |_| vec![step("what the machine has left", "free -h")],
};

fn fill(account: &mut Account, window: &Window<'_>) {
    account.figures.tried = reading::behind(window.text, window.head);
    let Some(array) = reading::rest(window.text, "arraywithshape(") else { return };
    let dtype = reading::rest(array, "anddatatype").unwrap_or_default();
    let dtype: String = dtype.chars().take(12).take_while(char::is_ascii_alphanumeric).collect();
    account.tensor = reading::tuple(array).map(|sizes| reading::tensor(sizes, &dtype));
}
