//! What this process and a keeper say to each other, over a pair of sockets.

use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use serde::{Deserialize, Serialize};

/// What a keeper is to start, as bytes: neither words nor folders need to be text.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    words: Vec<Vec<u8>>,
    /// Variables to set, or to unset.
    environment: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    folders: Vec<Vec<u8>>,
}

impl Order {
    pub(super) fn new(command: &Command, folders: &[PathBuf]) -> Order {
        let bytes = |text: &OsStr| text.as_bytes().to_vec();
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let variables = command.get_envs().map(|(name, value)| (bytes(name), value.map(bytes)));
        let folders = folders.iter().map(|folder| bytes(folder.as_os_str()));
        Order {
            words: words.map(bytes).collect(),
            environment: variables.collect(),
            folders: folders.collect(),
        }
    }

    pub(super) fn command(&self) -> Command {
        let text = |bytes: &Vec<u8>| OsString::from_vec(bytes.clone());
        let mut words = self.words.iter().map(text);
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        for (name, value) in &self.environment {
            match value {
                Some(value) => command.env(text(name), text(value)),
                None => command.env_remove(text(name)),
            };
        }
        command
    }

    /// Folders that are removed if nobody is left who could.
    pub(super) fn folders(&self) -> impl Iterator<Item = &Path> {
        self.folders.iter().map(|bytes| Path::new(OsStr::from_bytes(bytes)))
    }
}

/// What a keeper is asked for, by signals, and what it answers; a line each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// This signal is meant for the command.
    Pass(i32),
    /// End the command with this signal, and by force if that is not enough.
    End(i32),
    /// The command runs.
    Started,
    /// It could not be started, for this reason of the system's.
    Failed(i32),
    /// Nothing of it is left; how it ended, and whether by force.
    Ended { status: i32, by_force: bool },
}

impl Message {
    pub(super) fn line(self) -> String {
        match self {
            Message::Pass(signal) => format!("pass {signal}\n"),
            Message::End(signal) => format!("end {signal}\n"),
            Message::Started => "started\n".to_owned(),
            Message::Failed(reason) => format!("failed {reason}\n"),
            Message::Ended { status, by_force } => format!("ended {status} {by_force}\n"),
        }
    }

    pub(super) fn read(line: &str) -> Option<Message> {
        let mut words = line.split_whitespace();
        let verb = words.next()?;
        let mut number = || words.next()?.parse().ok();
        match verb {
            "pass" => Some(Message::Pass(number()?)),
            "end" => Some(Message::End(number()?)),
            "started" => Some(Message::Started),
            "failed" => Some(Message::Failed(number()?)),
            "ended" => {
                let status = number()?;
                Some(Message::Ended { status, by_force: words.next()? == "true" })
            }
            _ => None,
        }
    }
}

/// Hands an open file over, with one byte.
pub(super) fn hand_over(socket: &UnixStream, file: BorrowedFd<'_>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files = [file];
    control.push(SendAncillaryMessage::ScmRights(&files));
    rustix::net::sendmsg(socket, &[IoSlice::new(&[0])], &mut control, SendFlags::empty())?;
    Ok(())
}

/// Takes an open file over; nothing that is started later inherits it by accident.
pub(super) fn take_over(socket: &UnixStream) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let bytes = &mut [IoSliceMut::new(&mut byte)];
    rustix::net::recvmsg(socket.as_fd(), bytes, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let files = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    files.last().ok_or_else(|| io::Error::other("no file was handed over"))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn messages_are_read_as_they_are_written() {
        let ended = Message::Ended { status: 256, by_force: true };
        for message in
            [Message::Pass(15), Message::End(2), Message::Started, Message::Failed(13), ended]
        {
            assert_eq!(Message::read(&message.line()), Some(message));
        }
        assert_eq!(Message::read("pass"), None);
    }

    #[test]
    fn an_order_keeps_what_is_no_text() {
        let mut command = Command::new("python");
        command.arg(OsStr::from_bytes(b"\xff.py")).env("A", OsStr::from_bytes(b"\xfe"));
        command.env_remove("B");
        let text = serde_json::to_string(&Order::new(&command, &["/tmp/x".into()])).unwrap();
        let order: Order = serde_json::from_str(&text).unwrap();
        let again = order.command();
        assert_eq!(format!("{command:?}"), format!("{again:?}"));
        assert_eq!(order.folders().collect::<Vec<_>>(), [Path::new("/tmp/x")]);
    }

    #[test]
    fn a_file_is_handed_over_open() {
        let (one, other) = UnixStream::pair().unwrap();
        let (mut reader, mut writer) = io::pipe().unwrap();
        hand_over(&one, writer.as_fd()).unwrap();
        writer.write_all(b"a").unwrap();
        drop(writer);
        let mut taken = std::fs::File::from(take_over(&other).unwrap());
        taken.write_all(b"b").unwrap();
        drop(taken);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "ab");
    }
}
