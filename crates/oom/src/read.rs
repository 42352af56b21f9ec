//! From a text to its accounts.

use crate::account::{Account, Figures};
use crate::{clean, message, smi, summary};

/// More accounts than this are not kept: nobody reads them.
const MOST: usize = 1000;

/// Every out-of-memory message and memory table of a text, in its order; what is said twice is counted.
pub fn read(text: &str) -> Vec<Account> {
    let plain = clean::plain(text);
    let mut found = message::read(&clean::squeeze(&plain));
    found.extend(smi::read(&plain));
    found.extend(summary::read(&plain));
    // Where numbers are known, a sentence that only mentions the error adds nothing.
    if found.iter().any(|account| account.kind.is_refusal() && has_numbers(account)) {
        found.retain(has_numbers);
    }
    found.sort_by_key(|account| account.line);
    found.truncate(MOST * 10);
    let mut accounts: Vec<Account> = Vec::new();
    for account in found {
        let has_room = accounts.len() < MOST;
        match accounts.iter_mut().find(|known| known.says_the_same(&account)) {
            Some(known) => known.times += 1,
            None if has_room => accounts.push(account),
            None => {}
        }
    }
    accounts
}

fn has_numbers(account: &Account) -> bool {
    account.figures != Figures::default() || account.tensor.is_some()
}
