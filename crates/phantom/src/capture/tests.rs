use cuda_abi::handles::Kind;

use super::*;
use crate::handles;

/// Captures of one test are not hit by the calls of another.
static ALONE: Mutex<()> = Mutex::new(());

fn stream() -> Handle {
    handles::make(Kind::Stream).unwrap()
}

/// Modes of a capture and of a thread; whether this thread, and another, may call `cudaMalloc`.
#[test]
fn unsafe_calls_are_refused_by_both_modes() {
    let _alone = lock(&ALONE);
    let cases = [
        (0, 0, false, false),
        (0, 1, false, true),
        (0, 2, true, true),
        (1, 0, false, true),
        (1, 1, false, true),
        (2, 0, true, true),
    ];
    for (of_capture, of_thread, here, elsewhere) in cases {
        let call = |mode: c_int| {
            let mut mode = mode;
            exchange_mode(&mut mode).unwrap();
            let answer = unsafe_call();
            exchange_mode(&mut mode).unwrap();
            answer.is_ok()
        };
        for is_here in [true, false] {
            let (stream, mut out) = (stream(), Handle::default());
            begin(stream, of_capture).unwrap();
            let may = match is_here {
                true => call(of_thread),
                false => thread::scope(|scope| scope.spawn(|| call(of_thread)).join().unwrap()),
            };
            assert_eq!(may, if is_here { here } else { elsewhere }, "{of_capture} {of_thread}");
            assert_eq!(end(stream, Some(&mut out)).is_ok(), may);
        }
    }
}

#[test]
fn waiting_ends_a_capture_in_every_mode() {
    let _alone = lock(&ALONE);
    for mode in 0..3 {
        let (stream, other, mut out) = (stream(), stream(), Handle(1));
        begin(stream, mode).unwrap();
        assert_eq!(wait_for_stream(other), Ok(()));
        assert_eq!(wait_for_stream(stream), Err(Failure::CaptureUnsupported));
        assert_eq!(wait_for_stream(stream), Err(Failure::CaptureInvalidated));
        let mut status = 0;
        is_capturing(stream, &mut status).unwrap();
        assert_eq!(status, 2);
        assert_eq!(end(stream, Some(&mut out)), Err(Failure::CaptureInvalidated));
        assert_eq!(
            (out, end(stream, Some(&mut out))),
            (Handle::default(), Err(Failure::IllegalState))
        );
    }
}

#[test]
fn streams_must_come_back() {
    let _alone = lock(&ALONE);
    let (origin, side, event, back) = (stream(), stream(), stream(), stream());
    let mut out = Handle::default();
    let fork = || {
        begin(origin, 2).unwrap();
        record_event(event, origin).unwrap();
        wait_event(side, event, true).unwrap();
        add_work(side).unwrap();
    };
    fork();
    assert_eq!(end(side, Some(&mut out)), Err(Failure::CaptureUnmatched));
    assert_eq!(end(origin, Some(&mut out)), Err(Failure::CaptureInvalidated));
    fork();
    assert_eq!(end(origin, Some(&mut out)), Err(Failure::CaptureUnjoined));
    fork();
    record_event(back, side).unwrap();
    assert_eq!(wait_for_event(back), Err(Failure::CapturedEvent));
    assert_eq!(end(origin, Some(&mut out)), Err(Failure::CaptureInvalidated));
    fork();
    // By way of a third stream.
    let third = stream();
    record_event(back, side).unwrap();
    wait_event(third, back, true).unwrap();
    add_work(third).unwrap();
    record_event(back, third).unwrap();
    wait_event(origin, back, true).unwrap();
    assert_eq!(end(origin, Some(&mut out)), Ok(()));
    begin(origin, 0).unwrap();
    assert_eq!(wait_event(origin, event, false), Ok(()), "never recorded");
    assert_eq!(wait_event(origin, event, true), Err(Failure::CaptureIsolation));
    assert_eq!(end(origin, Some(&mut out)), Err(Failure::CaptureInvalidated));
}
