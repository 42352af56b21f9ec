//! Which variables of the environment a remembered trial depends on: all, but for a short list of those that
//! cannot matter to a script's memory.

use contract::environment as name;

/// Terminals, shells, sessions and desktops keep these for themselves. The working folder counts anyway.
const BOOKKEEPING: [&str; 33] = [
    "_",
    "COLORTERM",
    "COLUMNS",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "GPG_TTY",
    "HISTCONTROL",
    "HISTFILE",
    "HISTSIZE",
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
    "TMUX",
    "TMUX_PANE",
    "VTE_VERSION",
    "WINDOW",
    "WINDOWID",
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

/// Ours: where things are kept is not what they are, and the rest is part of the trial's settings.
const OURS: [&str; 5] = [name::CACHE, name::TIMEOUT, name::BUDGET, name::BASELINE, name::JOBS];

/// Names and values that count, in the order of the names.
pub(super) fn that_counts() -> Vec<(String, String)> {
    let text = |text: std::ffi::OsString| format!("{text:?}");
    let counts = |name: &str| {
        let is_of = |list: &[&str]| list.contains(&name);
        !is_of(&BOOKKEEPING) && !is_of(&OURS) && !BOOKKEEPERS.iter().any(|it| name.starts_with(it))
    };
    let all = std::env::vars_os().filter(|(name, _)| counts(&name.to_string_lossy()));
    let mut all: Vec<(String, String)> =
        all.map(|(name, value)| (text(name), text(value))).collect();
    all.sort();
    all
}
