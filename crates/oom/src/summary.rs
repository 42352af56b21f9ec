//! `torch.cuda.memory_summary()`.

use crate::account::Account;
use crate::amount::Amount;
use crate::families::{SUMMARY, complete};

const TITLE: &str = "memory summary, device ID ";

/// Units of its rows; up to torch 1.13 they are written without the `i`, and mean the same.
const UNITS: [(&str, u64); 8] = [
    ("B", 1),
    ("KB", 1 << 10),
    ("KiB", 1 << 10),
    ("MB", 1 << 20),
    ("MiB", 1 << 20),
    ("GB", 1 << 30),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

/// Every summary, in order.
pub(crate) fn read(plain: &str) -> Vec<Account> {
    let mut accounts: Vec<Account> = Vec::new();
    for (index, line) in plain.split('\n').enumerate() {
        if let Some((_, rest)) = line.split_once(TITLE) {
            let mut account = Account::new(&SUMMARY, index + 1);
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            account.device = rest[..digits].parse().ok();
            accounts.push(account);
        } else if let Some(account) = accounts.last_mut().filter(|_| line.contains('|')) {
            row(account, line);
        }
    }
    accounts.retain(|account| account.figures.allocated.is_some());
    accounts.iter_mut().for_each(|account| complete(&mut account.figures));
    accounts
}

/// `| Allocated memory      |    1062 MB |    4877 MB |   89299 MB |   88237 MB |`
fn row(account: &mut Account, line: &str) {
    let cells: Vec<&str> = line.split('|').map(str::trim).take(8).collect();
    let [_, name, now, peak, ..] = cells.as_slice() else { return };
    let figures = &mut account.figures;
    match *name {
        "Allocated memory" if figures.allocated.is_none() => {
            (figures.allocated, figures.peak_allocated) = (whole(now), whole(peak));
        }
        "GPU reserved memory" if figures.reserved.is_none() => {
            (figures.reserved, figures.peak_reserved) = (whole(now), whole(peak));
        }
        _ => {}
    }
}

/// `1062 MB`: whole units, the rest is cut off.
fn whole(cell: &str) -> Option<Amount> {
    let (number, unit) = cell.split_once(' ')?;
    let (_, bytes) = UNITS.iter().find(|(name, _)| *name == unit.trim())?;
    Amount::cut(number, *bytes)
}
