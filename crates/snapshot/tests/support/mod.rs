//! What several tests share: values in one canonical text, small pickles, the sample files.

#![allow(dead_code)]

use std::fmt::Write;
use std::path::{Path, PathBuf};

use snapshot::pickle::{Arena, Node, NodeId};

/// A value as text, the same that `tests/canonical.py` prints.
pub(crate) fn canonical(arena: &Arena<'_>, id: NodeId) -> String {
    let list = |items| arena.items(items).map(|id| canonical(arena, id)).collect::<Vec<_>>();
    match arena.node(id) {
        Node::None => "N".into(),
        Node::Bool(value) => if value { "T" } else { "F" }.into(),
        Node::Int(value) => value.to_string(),
        Node::Wide { .. } => arena.int(id).map_or("wide".into(), |value| value.to_string()),
        Node::Float(value) => format!("f{:016x}", value.to_bits()),
        Node::Str { .. } => format!("s{}", hex(arena.text(id).unwrap_or_default())),
        Node::Bytes { .. } => format!("b{}", hex(arena.text(id).unwrap_or_default())),
        Node::Tuple(items) => format!("({})", list(items).join(",")),
        Node::List(items) => format!("[{}]", list(items).join(",")),
        Node::Set(items) => {
            let mut items = list(items);
            items.sort();
            format!("<{}>", items.join(","))
        }
        Node::Record(_) => unreachable!("`load` leaves all dicts to the arena"),
        Node::Dict(items) => {
            let pair =
                |(key, value)| format!("{}:{}", canonical(arena, key), canonical(arena, value));
            format!("{{{}}}", arena.pairs(items).map(pair).collect::<Vec<_>>().join(","))
        }
    }
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A value to be pickled.
#[derive(Clone)]
pub(crate) enum Value {
    True,
    Int(u32),
    Text(&'static str),
    List(Vec<Value>),
    Pair(u32, u32),
    Dict(Vec<(&'static str, Value)>),
}

impl Value {
    /// A pickle of protocol 2.
    pub(crate) fn pickle(&self) -> Vec<u8> {
        let mut out = vec![0x80, 2];
        self.push(&mut out);
        out.push(b'.');
        out
    }

    fn push(&self, out: &mut Vec<u8>) {
        match self {
            Value::True => out.push(0x88),
            Value::Int(value) => {
                out.extend([0x8a, 5]);
                out.extend(value.to_le_bytes());
                out.push(0);
            }
            Value::Text(text) => {
                out.push(b'X');
                out.extend((text.len() as u32).to_le_bytes());
                out.extend(text.as_bytes());
            }
            Value::List(items) => {
                out.extend(b"](");
                items.iter().for_each(|item| item.push(out));
                out.push(b'e');
            }
            Value::Pair(first, second) => {
                Value::Int(*first).push(out);
                Value::Int(*second).push(out);
                out.push(0x86);
            }
            Value::Dict(pairs) => {
                out.extend(b"}(");
                for (key, value) in pairs {
                    Value::Text(key).push(out);
                    value.push(out);
                }
                out.push(b'u');
            }
        }
    }
}

/// The snapshots kept in this repository.
pub(crate) fn recorded() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recorded")
}

/// All sample files: those kept here, then the larger collection if it is there.
pub(crate) fn samples() -> Vec<PathBuf> {
    let collection = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/snapshots");
    if !collection.is_dir() {
        println!(
            "SKIPPED: the larger collection of snapshots is not there: {}",
            collection.display()
        );
    }
    let mut paths: Vec<PathBuf> = [recorded(), collection]
        .iter()
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ext| ext == "pickle" || ext == "pkl"))
        .collect();
    paths.sort();
    paths
}

/// What a Python program prints; `None`, said loudly, if there is no Python.
pub(crate) fn python(script: &str, arguments: &[&str]) -> Option<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(script);
    match std::process::Command::new("python3").arg(path).args(arguments).output() {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(String::from_utf8(output.stdout).expect("python prints UTF-8"))
        }
        Err(error) => {
            println!("SKIPPED: python3 does not start: {error}");
            None
        }
    }
}
