//! The analysis inside a browser: `assets/viewer/worker.js` of the page hands over files and gets an answer.
//!
//! - `request`: what is asked, and the files, in one piece of memory;
//! - `answers`: the same answers as those of the command, by the same functions;
//! - `kept`: what a page asks of its recordings afterwards;
//! - this file: the border to JavaScript. Nothing is imported: this code can reach no network, clock or file.
//!
//! The border has no unsafe code. JavaScript writes into a vector that [`room`] made and reads one that [`ask`]
//! left; both belong to this side. A panic ends the instance; what it said can still be read.

// For the names that JavaScript calls: `no_mangle` counts as unsafe, though nothing unsafe is done.
#![allow(unsafe_code)]

mod answers;
mod kept;
mod request;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What JavaScript hands over, and what it gets.
static ROOM: Mutex<Vec<u8>> = Mutex::new(Vec::new());
static ANSWER: Mutex<Vec<u8>> = Mutex::new(Vec::new());

fn lock(vector: &'static Mutex<Vec<u8>>) -> MutexGuard<'static, Vec<u8>> {
    vector.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes room for a request of this length and says where it is; 0 if there is no room for it.
#[unsafe(no_mangle)]
pub extern "C" fn room(length: usize) -> *mut u8 {
    let mut room = lock(&ROOM);
    *room = Vec::new();
    if room.try_reserve_exact(length).is_err() {
        return std::ptr::null_mut();
    }
    room.resize(length, 0);
    room.as_mut_ptr()
}

/// Answers the request in the room and says how long the answer is: JSON, see [`answers::Answer`].
#[unsafe(no_mangle)]
pub extern "C" fn ask() -> usize {
    answered(|request| {
        let (answer, kept) = answers::answer(request);
        kept::keep(kept);
        answer.to_json()
    })
}

/// Answers what a page asks of the recordings of the last answer: JSON, see [`kept::what_if`].
#[unsafe(no_mangle)]
pub extern "C" fn what_if() -> usize {
    answered(|request| kept::what_if(&request))
}

fn answered(answer: impl FnOnce(Vec<u8>) -> String) -> usize {
    std::panic::set_hook(Box::new(|what| note_panic(&what.to_string())));
    // The answer needs the room more than the request does.
    let request = std::mem::take(&mut *lock(&ROOM));
    lock(&ANSWER).clear();
    let answer = answer(request);
    let mut place = lock(&ANSWER);
    *place = answer.into_bytes();
    place.len()
}

/// Where the answer is, or what a panic said.
#[unsafe(no_mangle)]
pub extern "C" fn answer_at() -> *const u8 {
    lock(&ANSWER).as_ptr()
}

/// How long the answer is, or what a panic said; 0 if there is neither.
#[unsafe(no_mangle)]
pub extern "C" fn answer_length() -> usize {
    lock(&ANSWER).len()
}

/// The place of the answer is not locked while there may be a panic, except by one in `ask` itself.
fn note_panic(what: &str) {
    if let Ok(mut place) = ANSWER.try_lock() {
        *place = what.as_bytes().to_vec();
    }
}
