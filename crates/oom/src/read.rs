//! From a text to its accounts.

use crate::account::Account;
use crate::traceback::{self, Found, Traceback};
use crate::{clean, families, message, smi, summary};

/// More accounts than this are not kept: nobody reads them.
const MOST: usize = 1000;

/// A traceback further away than this belongs to something else.
const BEFORE: usize = 400;
const BEHIND: usize = 12;

/// Every out-of-memory message and memory table of a text, in its order, or in that of its times; what is said
/// twice is counted.
pub fn read(text: &str) -> Vec<Account> {
    let plain = clean::plain(text);
    let mut found = message::read(&clean::squeeze(&plain));
    found.truncate(MOST * 10);
    found.extend(smi::read(&plain));
    found.extend(summary::read(&plain));
    found.sort_by_key(|account| account.line);
    found.truncate(MOST * 10);
    labels(&mut found, text);
    let tracebacks = traceback::read(text);
    in_front(&mut found, &tracebacks);
    keep_what_tells_most(&mut found);
    let mut accounts = counted(found);
    behind(&mut accounts, &tracebacks);
    accounts.iter_mut().for_each(families::by_calls);
    other_errors(&mut accounts, &plain);
    by_time(&mut accounts);
    accounts
}

/// The rank and the time of each message's line.
fn labels(found: &mut [Account], text: &str) {
    let mut lines = text.split('\n').enumerate();
    let mut line = "";
    let mut number = 0;
    for account in found {
        while number < account.line {
            let Some((index, next)) = lines.next() else { break };
            (number, line) = (index + 1, next);
        }
        account.rank = account.rank.or_else(|| clean::rank(line));
        account.time = clean::time(line);
    }
}

/// The calls that Python shows in front of an error, if no other message of the rank stands between.
fn in_front(found: &mut [Account], tracebacks: &[Found]) {
    let lines: Vec<(Option<u32>, usize)> =
        found.iter().map(|account| (account.rank, account.line)).collect();
    for account in found.iter_mut().filter(|account| account.family.raises) {
        let (rank, line) = (account.rank, account.line);
        let end = tracebacks.partition_point(|found| found.first <= line);
        let mut earlier = tracebacks.iter().take(end).rev().take(200);
        let own = earlier.find(|found| found.rank == rank && found.last <= line);
        let Some(own) = own.filter(|own| line <= own.last + BEFORE) else { continue };
        // Bisection: the messages are in the order of their lines.
        let from = lines.partition_point(|(_, other)| *other <= own.last);
        let between = lines.iter().skip(from).take_while(|(_, other)| *other < line);
        if !between.into_iter().take(BEFORE).any(|(of, _)| *of == rank) {
            account.traceback = Some(own.traceback.clone());
        }
    }
}

/// Errors of a kernel, in CUDA's words, after which every later call fails too.
const OTHER_ERRORS: [&str; 4] = [
    "an illegal memory access was encountered",
    "device-side assert triggered",
    "unspecified launch failure",
    "an illegal instruction was encountered",
];

/// What else may be behind a message that is not sure of its reason.
fn other_errors(accounts: &mut [Account], text: &str) {
    let found = OTHER_ERRORS.into_iter().find(|words| text.contains(words));
    for account in accounts.iter_mut().filter(|account| !account.sure) {
        account.other_error = found;
    }
}

/// Some reports put the calls below, in front of the next message.
fn behind(accounts: &mut [Account], tracebacks: &[Found]) {
    let lines: Vec<usize> = accounts.iter().map(|account| account.line).collect();
    for account in accounts.iter_mut() {
        let next = lines.iter().find(|line| account.line < **line).copied();
        let end = next.unwrap_or(usize::MAX).min(account.line + BEHIND + 1);
        let raises = account.family.raises || account.kind == crate::Kind::Server;
        if !raises || account.traceback.is_some() {
            continue;
        }
        let from = tracebacks.partition_point(|found| found.first <= account.line);
        let next = tracebacks.iter().skip(from).take(50).find(|found| {
            (account.rank.is_none() || found.rank == account.rank) && found.first < end
        });
        account.traceback = next.map(|found| found.traceback.clone());
    }
}

/// Where numbers are known, a sentence that only mentions the error adds nothing; nor does a guess where
/// another message is sure of the same memory.
fn keep_what_tells_most(found: &mut Vec<Account>) {
    let refused = |account: &&Account| account.kind.is_refusal();
    let with_numbers: Vec<_> = {
        let all = found.iter().filter(refused).filter(|account| account.has_numbers());
        all.map(|account| account.memory).collect()
    };
    let is_weaker = |account: &Account| {
        account.kind.is_refusal()
            && !account.has_numbers()
            && with_numbers.contains(&account.memory)
    };
    found.retain(|account| !is_weaker(account));
    let sure: Vec<_> =
        found.iter().filter(refused).filter(|account| account.sure).map(|it| it.memory).collect();
    found.retain(|account| account.sure || !sure.contains(&account.memory));
}

fn counted(found: Vec<Account>) -> Vec<Account> {
    let mut accounts: Vec<Account> = Vec::new();
    for account in found {
        let has_room = accounts.len() < MOST;
        let is_same =
            |known: &&mut Account| known.says_the_same(&account) || known.goes_on_in(&account);
        match accounts.iter_mut().find(is_same) {
            Some(known) => {
                known.times += usize::from(known.says_the_same(&account));
                known.figures = account.figures;
                known.traceback = telling(known.traceback.take(), account.traceback);
            }
            None if has_room => accounts.push(account),
            None => {}
        }
    }
    accounts
}

/// Of two tracebacks of one message, the one that names a line of the user's.
fn telling(first: Option<Traceback>, second: Option<Traceback>) -> Option<Traceback> {
    let names = |it: &Option<Traceback>| it.as_ref().is_some_and(|it| it.user().is_some());
    if names(&second) && !names(&first) { second } else { first.or(second) }
}

/// Ranks write into one log in any order; where every message has its time, that is the order.
fn by_time(accounts: &mut [Account]) {
    if accounts.iter().all(|account| account.time.is_some()) {
        accounts.sort_by(|a, b| a.time.cmp(&b.time));
    }
}
