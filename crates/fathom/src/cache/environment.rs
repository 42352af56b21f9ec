//! Which variables of the environment a remembered trial depends on: all, but for a short list of those that
//! cannot matter to a script's memory, and for those of a batch system, which no trial sees.

use std::ffi::OsString;

use contract::environment as name;

/// Terminals, shells, sessions and desktops keep these for themselves. The working folder counts anyway; which
/// machine it is and where its temporary files are does not.
const BOOKKEEPING: [&str; 36] = [
    "_",
    "COLORTERM",
    "COLUMNS",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "GPG_TTY",
    "HISTCONTROL",
    "HISTFILE",
    "HISTSIZE",
    "HOSTNAME",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "LESSCLOSE",
    "LESSOPEN",
    "LINES",
    "LS_COLORS",
    "MAIL",
    "MOTD_SHOWN",
    "OLDPWD",
    "PROMPT_COMMAND",
    "PS1",
    "PWD",
    "SHLVL",
    "STY",
    "TERM",
    "TERM_PROGRAM",
    "TERM_PROGRAM_VERSION",
    "TERM_SESSION_ID",
    "TMPDIR",
    "TMUX",
    "TMUX_PANE",
    "VTE_VERSION",
    "WINDOW",
    "WINDOWID",
    "XDG_RUNTIME_DIR",
    "XDG_SESSION_ID",
];

/// Beginnings of names of such variables.
const BOOKKEEPERS: [&str; 11] = [
    "ALACRITTY_",
    "ATUIN_",
    "GNOME_TERMINAL_",
    "ITERM_",
    "KITTY_",
    "KONSOLE_",
    "SSH_",
    "STARSHIP_",
    "VSCODE_",
    "WEZTERM_",
    "ZELLIJ",
];

/// Beginnings of names by which a batch system tells one job from another.
const BATCH: [&str; 5] = ["PMI_", "PMIX_", "SLURMD_", "SLURM_", "SRUN_"];

/// Slurm says so what kind of job it is.
const KIND_OF_JOB: (&str, [&str; 2]) = ("ENVIRONMENT", ["BATCH", "INTERACTIVE"]);

/// Variables of a batch system that are set. A trial that saw them would be another one in each job: trials do
/// without them.
pub(crate) fn of_batch_system() -> Vec<OsString> {
    let is_kind = |name: &OsString, value: &OsString| {
        *name == *KIND_OF_JOB.0 && KIND_OF_JOB.1.iter().any(|kind| *value == **kind)
    };
    let is_of_batch = |(name, value): &(OsString, OsString)| {
        let text = name.to_string_lossy();
        BATCH.iter().any(|start| text.starts_with(start)) || is_kind(name, value)
    };
    std::env::vars_os().filter(is_of_batch).map(|(name, _)| name).collect()
}

/// Ours: where things are kept is not what they are, and the rest is part of the trial's settings.
const OURS: [&str; 5] = [name::CACHE, name::TIMEOUT, name::BUDGET, name::BASELINE, name::JOBS];

/// Names and values that count, in the order of the names.
pub(super) fn that_counts() -> Vec<(String, String)> {
    let text = |text: OsString| format!("{text:?}");
    let unseen = of_batch_system();
    let counts = |name: &str| {
        let is_of = |list: &[&str]| list.contains(&name);
        !is_of(&BOOKKEEPING) && !is_of(&OURS) && !BOOKKEEPERS.iter().any(|it| name.starts_with(it))
    };
    let all = std::env::vars_os()
        .filter(|(name, _)| counts(&name.to_string_lossy()) && !unseen.contains(name));
    let mut all: Vec<(String, String)> =
        all.map(|(name, value)| (text(name), text(value))).collect();
    all.sort();
    all
}
