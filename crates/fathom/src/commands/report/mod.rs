//! `fathom report`: measures why a command needs its memory and writes the document.
//!
//! A file for each stage. Each adds what it found to the document; a signal ends the trials, and what is known by then
//! is written.

mod change;
mod configurations;
mod files;
mod growth;
mod knobs;
mod lab;
mod remedies;
mod scaling;
mod sizes;
mod subject;

use std::time::Instant;

use anyhow::Result;
use report::document::{self, Compared, Document};
use study::Verdict;

use self::files::Files;
use self::lab::Lab;
use self::subject::Subject;
use crate::cli::ReportArguments;
use crate::screen;
use crate::session;
use crate::shell;

/// Measures and writes.
pub(crate) fn report(arguments: &ReportArguments) -> Result<u8> {
    let began = Instant::now();
    let files = Files::check(arguments)?;
    // What the script prints is not the answer.
    screen::keep_for_answer()?;
    let (cards, understood) = arguments.cards.meant()?;
    let other = arguments.compare.as_deref().map(words).transpose()?;
    let found = knobs::find(arguments, knobs::asked(arguments)?)?;
    let quiet = arguments.trial.quiet;
    let say = |doing: &str| {
        if !quiet {
            screen::say(&format!("fathom: {:.0} s: {doing}", began.elapsed().as_secs_f64()));
        }
    };
    say("the run as it is");
    let mut subject = Subject::measure(&arguments.trial.command, arguments, cards.first())?;
    let mut document = of_subject(arguments, &subject);
    document.known.notes.extend(understood);
    if is_open(&subject)
        && let Err(error) =
            fill(&mut document, &mut subject, arguments, (&cards, &found, other), &say)
    {
        // What was measured before stands.
        document.known.notes.push(format!("not all could be measured: {error:#}"));
    }
    if let Some(signal) = session::ending() {
        let seconds = began.elapsed().as_secs_f64();
        document.unfinished =
            Some(format!("{} ended it after {seconds:.0} s", session::name(signal)));
    }
    let code = files.write(&mut document, &subject, arguments)?;
    let exit_code = match subject.run.verdict {
        _ if document.unfinished.is_some() => 4,
        Verdict::ScriptFailed => 3,
        Verdict::Interrupted | Verdict::TimedOut => 4,
        _ => 0,
    };
    Ok(if code == 0 { exit_code } else { code })
}

/// Whether there is something to take apart.
fn is_open(subject: &Subject) -> bool {
    let has_ended =
        matches!(subject.run.verdict, Verdict::Fits | Verdict::Grew | Verdict::DoesNotFit);
    has_ended && subject.whole().anatomy().is_some()
}

/// What the run by itself shows.
fn of_subject(arguments: &ReportArguments, subject: &Subject) -> Document {
    let (run, whole) = (&subject.run, subject.whole());
    let mut document = Document {
        schema: document::SCHEMA,
        command: shown(&arguments.trial.command),
        made_by: arguments.shown(),
        answer: document::Answer::of(run, whole),
        anatomy: document::Anatomy::of(whole, subject.unlimited.is_some()),
        places: document::Place::all(whole),
        why: document::Why::of(run, whole),
        known: document::Known::of(run),
        ..Document::default()
    };
    document.known.commands.push(document.made_by.clone());
    document
}

type Asked<'a> = (&'a [gpus::Card], &'a [knobs::Found], Option<Vec<String>>);

/// All that takes trials.
fn fill(
    document: &mut Document,
    subject: &mut Subject,
    arguments: &ReportArguments,
    (cards, found, other): Asked<'_>,
    say: &dyn Fn(&str),
) -> Result<()> {
    let is_over = || session::ending().is_some();
    let mut lab = Lab::new(arguments, found, subject.card())?;
    if let Some(other) = other {
        say("the other command");
        let second = Subject::measure(&other, arguments, cards.first())?;
        let commands = [document.command.clone(), shown(&other)];
        document.compared = Compared::of(commands, [subject.whole(), second.whole()]);
    }
    if found.iter().all(|it| it.wanted.is_empty() && it.number().is_none()) {
        let hint = "No number of the script's was varied: none was found in flags, config files and defaults of the script's parser. `--vary` with \
                    `--set` names one.";
        document.known.not_seen.push(hint.to_owned());
    }
    if !is_over() {
        say("how the peak grows with the settings");
        scaling::add(document, subject, &mut lab, found)?;
    }
    if !is_over() {
        say("what each remedy brings");
        remedies::add(document, subject, &mut lab)?;
    }
    if !is_over() {
        say("settings for each GPU");
        configurations::add(document, arguments, cards, &mut lab, found)?;
    }
    if let Some(runner) = &subject.runner {
        lab.fitting.runner.counts.join(&runner.counts);
    }
    document.known.trials = lab.fitting.runner.counts.run;
    document.known.remembered = lab.fitting.runner.counts.remembered;
    document.known.notes.extend(lab.fitting.runner.counts.notes());
    Ok(())
}

/// A command as it can be typed.
fn shown(command: &[String]) -> String {
    shell::line(command.iter().map(String::as_str))
}

/// `--compare`, as a shell would take it apart.
fn words(text: &str) -> Result<Vec<String>> {
    let words = shell::words(text);
    match words.is_empty() {
        true => Err(crate::error::Hinted::error(
            "`--compare` names no command",
            "`--compare 'python train.py --small'`",
        )),
        false => Ok(crate::cli::complete(words)),
    }
}
