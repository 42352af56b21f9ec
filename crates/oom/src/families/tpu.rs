//! XLA on TPUs, of JAX, TensorFlow and torch_xla: `Used 21.95G of 15.48G hbm`.

use super::{Family, Head, Memory, Place, Window, reading, says, step};
use crate::account::{Account, Kind};
use crate::cause::Cause;

pub(super) const FAMILY: Family = Family {
    id: "tpu",
    speaker: "XLA",
    kind: Kind::Jax,
    memory: Memory::Device,
    means: "the program wants more than the memory of one TPU core",
    facts: &[],
    raises: true,
    heads: &[
        says("ranoutofmemoryinmemoryspace"),
        Head { words: "attemptingtoreserve", near: 0, fits: is_refused },
        Head { words: "attemptingtoallocate", near: 0, fits: is_refused },
    ],
    fill,
    steps: |_| {
        vec![step(
            "what the program wants, buffer by buffer",
            "XLA_FLAGS=--xla_dump_to=/tmp/xla COMMAND",
        )]
    },
};

fn is_refused(place: &Place<'_>) -> bool {
    place.near(120).contains("thatwasnotpossible")
}

fn fill(account: &mut Account, window: &Window<'_>) {
    let text = window.text;
    let figures = &mut account.figures;
    if let Some(used) = reading::rest(text, "used").filter(|_| window.head.starts_with("ran")) {
        figures.tried = crate::amount::Amount::at(used).map(|(amount, _)| amount);
        figures.capacity = reading::behind(used, "of");
        return;
    }
    if text.contains("duetofragmentation") {
        account.cause = Some(Cause::Pieces);
    }
    figures.tried = reading::behind(text, window.head);
    figures.free = reading::behind(text, "thereare");
    figures.capacity = reading::behind(text, "capacity");
    let held = reading::rest(text, "currentlyallocated:");
    figures.allocated =
        held.and_then(|held| reading::bytes(held, "(").or_else(|| reading::behind(held, "")));
}
