//! Communicators whose ranks are all in this process: each rank's call is kept until the group of
//! calls ends, and then they are answered together.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::c_int;

use cuda_abi::types::Address;

use super::Communicator;
use super::values::{Operation, bytes_of, combine};
use crate::memory;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    AllReduce,
    Reduce,
    Broadcast,
}

/// One rank's call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub(super) kind: Kind,
    pub(super) from: Address,
    pub(super) to: Address,
    pub(super) count: usize,
    pub(super) dtype: c_int,
    pub(super) operation: c_int,
    pub(super) root: c_int,
}

/// Calls of each clique in order: rank, call.
type Calls = BTreeMap<usize, Vec<(Communicator, Call)>>;

thread_local! {
    static CALLS: RefCell<Calls> = const { RefCell::new(BTreeMap::new()) };
}

/// Keeps a call for the end of its group; `false` if the communicator's other ranks are elsewhere.
pub(super) fn takes(communicator: Communicator, call: Call) -> bool {
    if communicator.clique == 0 {
        return false;
    }
    CALLS.with_borrow_mut(|calls| {
        calls.entry(communicator.clique).or_default().push((communicator, call));
    });
    true
}

/// The group has ended: the first call of every rank belongs together, then the second, and so on.
pub(super) fn answer() {
    for calls in CALLS.take().into_values() {
        let mut rounds: Vec<BTreeMap<usize, Call>> = Vec::new();
        for (communicator, call) in calls {
            let round = rounds.iter().position(|round| !round.contains_key(&communicator.rank));
            let round = round.unwrap_or_else(|| {
                rounds.push(BTreeMap::new());
                rounds.len() - 1
            });
            rounds[round].insert(communicator.rank, call);
        }
        rounds.iter().for_each(answer_round);
    }
}

fn answer_round(calls: &BTreeMap<usize, Call>) {
    let Some(first) = calls.values().next().copied() else { return };
    let bytes = first.count.saturating_mul(bytes_of(first.dtype));
    let root = calls.get(&(first.root.max(0) as usize)).copied();
    let receivers: Vec<Address> = match (first.kind, root) {
        (Kind::Broadcast, Some(root)) => {
            calls.values().for_each(|call| memory::move_small(call.to, root.from, bytes));
            return;
        }
        (Kind::AllReduce, _) => calls.values().map(|call| call.to).collect(),
        (Kind::Reduce, Some(root)) => vec![root.to],
        _ => return,
    };
    let Some(operation) = Operation::of(first.operation) else { return };
    let payloads: Option<Vec<Vec<u8>>> =
        calls.values().map(|call| memory::read_small(call.from, bytes)).collect();
    let together = payloads.map(|payloads| {
        let mut out = vec![0; bytes];
        combine(first.dtype, operation, &payloads, &mut out);
        out
    });
    for receiver in receivers {
        memory::put_small(receiver, bytes, together.as_deref());
    }
}
