//! Each instruction of pickle in a few bytes: the value it gives, or the error.

mod support;

use snapshot::pickle;

/// The value or the error of a pickle.
fn shown(bytes: &[u8]) -> String {
    match pickle::load(bytes) {
        Ok(arena) => support::canonical(&arena, arena.root()),
        Err(error) => error.to_string(),
    }
}

#[track_caller]
fn check(cases: &[(&[u8], &str)]) {
    for (bytes, expected) in cases {
        assert_eq!(shown(bytes), *expected, "{}", bytes.escape_ascii());
    }
}

#[test]
fn constants_and_numbers() {
    check(&[
        (b"N.", "N"),
        (b"\x88.", "T"),
        (b"\x89.", "F"),
        (b"I01\n.", "T"),
        (b"I00\n.", "F"),
        (b"I-7\n.", "-7"),
        (b"I1x\n.", "`INT` at byte 0 expected a decimal integer"),
        (b"K\xff.", "255"),
        (b"M\x01\x02.", "513"),
        (b"J\xff\xff\xff\xff.", "-1"),
        (b"L12345678901L\n.", "12345678901"),
        (b"L18446744073709551615L\n.", "18446744073709551615"),
        (b"\x8a\x00.", "0"),
        (b"\x8a\x01\xff.", "-1"),
        (b"\x8a\x02\xff\x00.", "255"),
        (b"\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80.", "-9223372036854775808"),
        (b"\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00.", "18446744073709551615"),
        (b"\x8a\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff.", "-1"),
        (b"\x8b\x02\x00\x00\x00\x00\x80.", "-32768"),
        (b"F1.5\n.", "f3ff8000000000000"),
        (b"Fone\n.", "`FLOAT` at byte 0 expected a decimal float"),
        (b"G\x3f\xf8\0\0\0\0\0\0.", "f3ff8000000000000"),
    ]);
    let huge = format!("L{}L\n.", "9".repeat(60));
    assert_eq!(
        shown(huge.as_bytes()),
        "`LONG` at byte 0: a decimal integer that does not fit into 128 bits"
    );
}

#[test]
fn text_and_bytes() {
    check(&[
        (b"X\x02\0\0\0ab.", "s6162"),
        (b"\x8c\x02ab.", "s6162"),
        (b"\x8d\x02\0\0\0\0\0\0\0ab.", "s6162"),
        (b"T\x02\0\0\0ab.", "s6162"),
        (b"U\x02ab.", "s6162"),
        (b"S'a\\x62\\'\\n\\101'\n.", "s6162270a41"),
        (b"Sab\n.", "`STRING` at byte 0 expected a string in quotes"),
        (b"S'a\\'\n.", "`STRING` at byte 0 expected a character after the backslash"),
        (b"Va\\u00e9\xe9\n.", "s61c3a9c3a9"),
        (b"V\\u00\n.", "`UNICODE` at byte 0 expected hex digits"),
        (b"V\\u+0e9\n.", "`UNICODE` at byte 0 expected hex digits"),
        (b"B\x01\0\0\0\xff.", "bff"),
        (b"C\x01\xff.", "bff"),
        (b"\x8e\x01\0\0\0\0\0\0\0\xff.", "bff"),
        (b"\x96\x01\0\0\0\0\0\0\0\xff.", "bff"),
        (
            b"X\xff\xff\xff\xffab.",
            "`BINUNICODE` at byte 0 needs 4294967292 more bytes than the file has",
        ),
        (
            b"\x8e\xff\xff\xff\xff\xff\xff\xff\xffab.",
            "`BINBYTES8` at byte 0 needs 18446744073709551612 more bytes than the file has",
        ),
    ]);
}

#[test]
fn containers() {
    check(&[
        (b").", "()"),
        (b"K\x01\x85.", "(1)"),
        (b"K\x01K\x02\x86.", "(1,2)"),
        (b"K\x01K\x02K\x03\x87.", "(1,2,3)"),
        (b"(K\x01K\x02t.", "(1,2)"),
        (b"(K\x01K\x02l.", "[1,2]"),
        (b"(K\x01K\x02d.", "{1:2}"),
        (b"(K\x01d.", "`DICT` at byte 3 expected a value for each key"),
        (b"].", "[]"),
        (b"]K\x01aK\x02a(K\x03e.", "[1,2,3]"),
        (b"](e.", "[]"),
        (b"]]K\x01aa(K\x02K\x03e.", "[[1],2,3]"),
        (b"}K\x01K\x02s(K\x03K\x04u.", "{1:2,3:4}"),
        (b"}(K\x01u.", "`SETITEMS` at byte 4 expected a value for each key"),
        (b"](K\x01K\x02u.", "`SETITEMS` at byte 6 expected a dict below the values"),
        (b"}(K\x01e.", "`APPENDS` at byte 4 expected a list below the values"),
        (b"\x8f(K\x01K\x02\x90.", "<1,2>"),
        (b"(K\x01\x91.", "<1>"),
        (b"K\x01a.", "`APPEND` at byte 2 expected a list below the values"),
        (b"K\x01s.", "`SETITEM` at byte 2 expected a value on the stack"),
    ]);
}

#[test]
fn stack_memo_and_frames() {
    check(&[
        (b"\x80\x05N.", "N"),
        (b"\x80\x06N.", "`PROTO` at byte 0 expected a protocol from 0 to 5"),
        (b"\x95\x02\0\0\0\0\0\0\0N.", "N"),
        (b"\x95\x09\0\0\0\0\0\0\0N.", "`FRAME` at byte 0 needs 7 more bytes than the file has"),
        (b"K\x01K\x020.", "1"),
        (b"K\x01(0.", "1"),
        (b"K\x01(K\x02K\x031.", "1"),
        (b"K\x012\x86.", "(1,1)"),
        (b"](K\x01p7\ng7\nq\x08h\x08r\x09\0\0\0j\x09\0\0\0e.", "[1,1,1,1]"),
        (b"](\x8c\x01a\x94h\x00e.", "[s61,s61]"),
        (
            b"](K\x01\x94j\0\0\0\0j\0\0\0\0j\x01\0\0\0e.",
            "`LONG_BINGET` at byte 15 expected a memo index that was set before",
        ),
        (b"h\x00.", "`BINGET` at byte 0 expected a memo index that was set before"),
        (b"gx\n.", "`GET` at byte 0 expected a memo index"),
        (
            b"Nr\xff\xff\xff\x7f.",
            "`LONG_BINPUT` at byte 1: a memo index greater than the file has bytes",
        ),
        (b"\x94.", "`MEMOIZE` at byte 0 expected a value on the stack"),
        (b"N(\x94.", "`MEMOIZE` at byte 2 expected a value on the stack"),
        (b".", "`STOP` at byte 0 expected a value on the stack"),
        (b"N(.", "`STOP` at byte 2 expected a value on the stack"),
        (b"t.", "`TUPLE` at byte 0 expected an open `MARK`"),
        (b"N", "the file ends at byte 1 before the end of its pickle (`STOP`)"),
        (b"", "the file ends at byte 0 before the end of its pickle (`STOP`)"),
        (b"N.rest", "N"),
        (b"\xfe.", "byte 0 is 0xfe, which is not a pickle instruction"),
    ]);
}

#[test]
fn whatever_would_run_is_refused() {
    check(&[
        (
            b"cos\nsystem\n(S'true'\ntR.",
            "refused `GLOBAL` at byte 0: it asks to import `os.system`",
        ),
        (
            b"ccollections\nOrderedDict\n)R.",
            "refused `GLOBAL` at byte 0: it asks to import `collections.OrderedDict`",
        ),
        (
            b"\x8c\x02os\x8c\x06system\x93.",
            "refused `STACK_GLOBAL` at byte 12: it asks to import `os.system`",
        ),
        (b"(ios\nsystem\n.", "refused `INST` at byte 1: it asks to import `os.system`"),
        (b"c\x1b[31m\n\n.", "refused `GLOBAL` at byte 0: it asks to import `\\u{1b}[31m.`"),
        (b"N)R.", "refused `REDUCE` at byte 2: it asks to call a function or a class"),
        (b"N)b.", "refused `BUILD` at byte 2: it asks to call a function or a class"),
        (b"(No.", "refused `OBJ` at byte 2: it asks to call a function or a class"),
        (b"N)\x81.", "refused `NEWOBJ` at byte 2: it asks to call a function or a class"),
        (b"N)}\x92.", "refused `NEWOBJ_EX` at byte 3: it asks to call a function or a class"),
        (b"Pid\n.", "refused `PERSID` at byte 0: it asks to fetch an object from outside the file"),
        (b"NQ.", "refused `BINPERSID` at byte 1: it asks to fetch an object from outside the file"),
        (b"\x82\x01.", "refused `EXT1` at byte 0: it asks to import from the extension registry"),
        (
            b"\x97.",
            "refused `NEXT_BUFFER` at byte 0: it asks to use a buffer from outside the file",
        ),
    ]);
}

#[test]
fn lists_that_share_their_children_stay_apart() {
    // Two lists of the same four items; the first then grows, the second must not.
    check(&[(
        b"](](NNNNe\x94](NNNNeh\x00K\x01aK\x02ae.",
        "[[N,N,N,N,1,2],[N,N,N,N],[N,N,N,N,1,2]]",
    )]);
}
