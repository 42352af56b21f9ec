//! Commands that go on from an answer, filled in as far as the text says.

use gpus::Card;
use oom::{Account, Amount, Cause, Kind, Memory};
use report::oom::{Next, Texts};

use crate::Said;

/// What stands where the text does not say which script it was.
const SCRIPT: &str = "python train.py";

/// Steps of the message's family first; then who asked and who holds the memory; what to change comes last.
pub(crate) fn next(answer: &Texts, texts: &[(String, String)], arguments: &Said) -> Vec<Next> {
    let Some(entry) = answer.main() else { return figures(arguments) };
    let account = &entry.account;
    let command = command(account, arguments);
    let step = |why: &str, command: String| Next { why: why.to_owned(), command };
    let steps = account.family.steps(account);
    let mut next: Vec<Next> =
        steps.iter().map(|it| step(it.why, it.command.replace("COMMAND", &command))).collect();
    if !is_for_fathom(account, entry.balance.cause) {
        return next;
    }
    let card = card_flags(account, arguments);
    let file = texts.first().map(|(name, _)| name.as_str()).filter(|name| *name != "-");
    // Others ask beside PyTorch's allocator: no tensor has that size.
    let is_of_tensor = account.figures.tried.is_some() && account.kind.is_caching_allocator();
    if let (Some(file), true, true) = (file, arguments.command.is_empty(), is_of_tensor) {
        next.push(step(
            "who asked for it",
            format!("fathom explain {} -- {command}", quoted(file)),
        ));
    }
    next.push(step(
        "who holds the memory, without a GPU",
        format!("fathom run{card} -- {command}"),
    ));
    next.push(step("what to change so that it fits", format!("fathom fit{card} -- {command}")));
    next
}

/// Fathom simulates PyTorch on NVIDIA's GPUs; what it finds about tensors holds for other GPUs too.
fn is_for_fathom(account: &Account, cause: Cause) -> bool {
    let is_of_torch = match account.kind {
        Kind::Cuda | Kind::Hip | Kind::Xpu | Kind::Mps => true,
        Kind::CudaError | Kind::Library | Kind::Smi | Kind::Summary => true,
        Kind::Host | Kind::Jax | Kind::TensorFlow | Kind::Framework | Kind::Server => false,
    };
    let is_of_gpu = matches!(account.memory, Memory::Device | Memory::Unified);
    is_of_torch && is_of_gpu && cause != Cause::NotMemory
}

/// Of figures alone: what is missing, then what to change.
fn figures(arguments: &Said) -> Vec<Next> {
    let card = arguments.gpu.as_deref().map(|name| format!(" --gpu {}", quoted(name)));
    let card = card.unwrap_or_default();
    let command = script(None, arguments);
    let step = |why: &str, command: String| Next { why: why.to_owned(), command };
    let mut next = Vec::new();
    if let (Some(smi), None) = (&arguments.smi, &arguments.reserved) {
        let flags = format!("--smi {} --reserved SIZE --allocated SIZE{card}", quoted(smi));
        next.push(step("with what PyTorch counts", format!("fathom explain {flags}")));
    }
    next.push(step(
        "who holds the memory, without a GPU",
        format!("fathom run{card} -- {command}"),
    ));
    next.push(step("what to change so that it fits", format!("fathom fit{card} -- {command}")));
    next
}

fn command(account: &Account, arguments: &Said) -> String {
    let script_of = account.traceback.as_ref().and_then(|calls| calls.script());
    script(script_of, arguments)
}

/// The command that was given, else the script of the traceback, else a name that stands for it.
fn script(found: Option<&str>, arguments: &Said) -> String {
    if !arguments.command.is_empty() {
        return arguments.command.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    }
    match found.filter(|file| file.ends_with(".py")) {
        Some(file) => format!("python {}", quoted(file)),
        None => SCRIPT.to_owned(),
    }
}

/// A word as a shell takes it. Texts are untrusted: nothing of them may run when the line is pasted.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,~@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    let word: String = word.chars().filter(|c| !c.is_control()).collect();
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// ` --gpu NAME` if one card of the catalogue has that much or that name, else ` --memory SIZE`.
fn card_flags(account: &Account, arguments: &Said) -> String {
    if let Some(name) = &arguments.gpu {
        return format!(" --gpu {}", quoted(name));
    }
    let figures = &account.figures;
    let size = |amount: Amount| report::bytes::text(amount.middle()).replace(' ', "");
    let named =
        Some(account.card.as_str()).filter(|name| !name.is_empty() && !name.ends_with("..."));
    let named = named.and_then(|name| gpus::find(name).ok());
    match (named, figures.capacity) {
        (Some(card), _) => format!(" --gpu {}", card.name),
        (None, Some(capacity)) => only(capacity).map_or_else(
            || format!(" --memory {}", size(capacity)),
            |card| format!(" --gpu {}", card.name),
        ),
        (None, None) => String::new(),
    }
}

/// The one card of the catalogue that has that much.
fn only(capacity: Amount) -> Option<&'static Card> {
    let mut fitting = gpus::cards().iter().filter(|card| capacity.contains(card.memory_bytes));
    fitting.next().filter(|_| fitting.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(text: &str) -> String {
        card_flags(&oom::read(text)[0], &Said::default())
    }

    #[test]
    fn a_card_is_named_if_only_one_has_that_much() {
        let message = "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; SIZE total capacity;";
        assert_eq!(flags(&message.replace("SIZE", "31.36 GiB")), " --gpu rtx5090");
        assert_eq!(flags(&message.replace("SIZE", "1.00 GiB")), " --memory 1.00GiB");
    }

    #[test]
    fn nothing_of_a_text_runs_when_it_is_pasted() {
        assert_eq!(quoted("train.py"), "train.py");
        assert_eq!(quoted("my train.py"), "'my train.py'");
        assert_eq!(quoted("a$(reboot)'.py"), "'a$(reboot)'\\''.py'");
        assert_eq!(quoted("a\n.py"), "'a.py'");
    }
}
