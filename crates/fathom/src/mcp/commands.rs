//! The command that each tool is, and its answer.

use std::path::Path;

use anyhow::{Context, Result, bail};
use rmcp::RoleServer;
use rmcp::model::{CallToolResult, ContentBlock};
use rmcp::service::RequestContext;
use serde::Serialize;
use serde_json::Value;

use super::call::{Call, Finished};
use super::inputs::{
    AskInput, Card, DiffInput, ExplainInput, FitInput, GpusInput, ReportInput, RunInput, Script,
    SweepInput,
};
use super::outputs::{
    AskOutput, DiffOutput, ExplainOutput, FitOutput, Gpu, GpusOutput, ReportOutput, SweepOutput,
};
use super::short;
use crate::error::Hinted;

/// Plans of `fit` beside the chosen one, at most.
const PLANS: usize = 5;

/// Points of a sweep, at most.
const POINTS: usize = 100;

/// Exit codes of this program.
const REFUSED: i32 = 2;
const SCRIPT_FAILED: i32 = 3;

fn given(output: &impl Serialize) -> Result<CallToolResult> {
    Ok(CallToolResult::structured(serde_json::to_value(output)?))
}

/// A call of a command that starts a script.
fn of_script(verb: &str, script: &Script) -> Result<Call> {
    if script.command.first().is_none_or(String::is_empty) {
        return Err(Hinted::error(
            "no command is named",
            "pass it as words: `[\"python\", \"train.py\"]`",
        ));
    }
    Call::new(verb, &script.folder, &script.limits)
}

/// On that card, and then the command; nothing of the client's is read as a flag of ours.
fn on(call: &mut Call, card: &Card) {
    call.flag("--gpu", card.gpu.as_ref());
    call.flag("--memory", card.memory.as_ref());
}

fn the_command(call: &mut Call, script: &Script) {
    call.json();
    call.add(["--"]);
    call.add(script.command.iter().cloned());
}

/// The answer of a command; an error with what it printed if there is none.
fn answered(finished: &Finished) -> Result<&Value> {
    if finished.code == Some(REFUSED) || finished.json.is_none() {
        return Err(refused(&finished.printed));
    }
    finished.json.as_ref().context("there is no answer")
}

/// What a command said when it refused, as an error of its own.
fn refused(printed: &str) -> anyhow::Error {
    let from = printed.rfind("error: ").map_or(0, |at| at + "error: ".len());
    let said = &printed[from..];
    match said.rsplit_once("hint: ") {
        Some((message, hint)) => Hinted::error(message.trim(), hint.trim()),
        None if said.trim().is_empty() => {
            Hinted::error("the command ended without an answer", "run it in a terminal to see why")
        }
        None => Hinted::error(said.trim(), "run the same command in a terminal to see more"),
    }
}

pub(super) async fn run(
    input: Result<RunInput>,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResult> {
    let input = input?;
    let mut call = of_script("run", &input.script)?;
    on(&mut call, &input.card);
    call.flag("--steps", input.steps);
    call.flag("--world-size", input.world_size);
    if input.quick {
        call.add(["--verify=off", "--whole=off"]);
    }
    the_command(&mut call, &input.script);
    let finished = call.run(context).await?;
    let output = short::run(answered(&finished)?, &finished.printed);
    failing(&finished, given(&output)?)
}

/// A script that fails for another reason than memory is an error that says why; what is known up to then stands beside it.
fn failing(finished: &Finished, mut result: CallToolResult) -> Result<CallToolResult> {
    if finished.code == Some(SCRIPT_FAILED) {
        let failure = finished
            .json
            .as_ref()
            .map(|report| format!(": {}", short::text(report, "/failure")))
            .unwrap_or_default();
        let message = format!(
            "error: the script failed, but not for memory{failure}\n{}\n\nhint: start the command by itself in its folder; a wrong \
             path, a missing file or package fails there too",
            finished.printed
        );
        result.is_error = Some(true);
        result.content = vec![ContentBlock::text(message)];
    }
    Ok(result)
}

pub(super) async fn ask(
    input: Result<AskInput>,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResult> {
    let input = input?;
    if input.questions.is_empty() {
        bail!(Hinted::error(
            "no question was asked",
            "for example `questions: [\"batch 16\", \"where does the memory go?\"]`"
        ));
    }
    let mut call = of_script("run", &input.script)?;
    on(&mut call, &input.card);
    call.add(["--whole=off"]);
    if input.try_changes == Some(false) {
        call.add(["--verify=off"]);
    }
    for question in &input.questions {
        call.flag("--ask", Some(question));
    }
    the_command(&mut call, &input.script);
    let finished = call.run(context).await?;
    let report = answered(&finished)?;
    let output = AskOutput {
        headline: short::text(report, "/headline"),
        answers: short::answers(report),
        notes: short::texts(report, "/notes"),
    };
    failing(&finished, given(&output)?)
}

pub(super) async fn fit(
    input: Result<FitInput>,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResult> {
    let input = input?;
    let mut call = of_script("fit", &input.script)?;
    on(&mut call, &input.card);
    input.levers.iter().for_each(|lever| call.flag("--try", Some(lever)));
    input.vary.iter().for_each(|vary| call.flag("--vary", Some(vary)));
    if input.allow_training {
        call.add(["--allow=training"]);
    }
    the_command(&mut call, &input.script);
    let finished = call.run(context).await?;
    let answer = answered(&finished)?;
    let plans = short::rows(answer, "/plans");
    let chosen = short::at(answer, "/chosen").as_u64().and_then(|at| usize::try_from(at).ok());
    let others = plans.iter().enumerate().filter(|(at, _)| Some(*at) != chosen);
    let not =
        |row: &Value| format!("{}: {}", short::text(row, "/lever"), short::text(row, "/reason"));
    let output = FitOutput {
        gpu: short::text(answer, "/gpu"),
        as_it_is: short::text(answer, "/baseline/verdict"),
        device_as_it_is: short::number_or_unknown(answer, "/baseline/device_bytes", "modelled"),
        chosen: chosen.and_then(|at| plans.get(at)).map(short::plan),
        other_plans: others.take(PLANS).map(|(_, plan)| short::plan(plan)).collect(),
        not_applicable: short::rows(answer, "/not_applicable").iter().map(not).collect(),
        trials: short::at(answer, "/trials").as_u64().unwrap_or(0),
        notes: short::texts(answer, "/notes"),
    };
    failing(&finished, given(&output)?)
}

pub(super) async fn sweep(
    input: Result<SweepInput>,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResult> {
    let input = input?;
    let mut call = of_script("sweep", &input.script)?;
    input.gpus.iter().for_each(|gpu| call.flag("--gpu", Some(gpu)));
    input.memories.iter().for_each(|memory| call.flag("--memory", Some(memory)));
    input.vary.iter().for_each(|vary| call.flag("--vary", Some(vary)));
    input.set.iter().for_each(|set| call.flag("--set", Some(set)));
    the_command(&mut call, &input.script);
    let finished = call.run(context).await?;
    let answer = answered(&finished)?;
    let output = SweepOutput {
        points: short::rows(answer, "/points").iter().take(POINTS).map(short::point).collect(),
        largest: short::plain(answer, "/largest"),
        scaling: short::plain(answer, "/scaling"),
        notes: short::texts(answer, "/notes"),
    };
    failing(&finished, given(&output)?)
}

pub(super) async fn document(
    input: Result<ReportInput>,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResult> {
    let input = input?;
    let mut call = of_script("report", &input.script)?;
    on(&mut call, &input.card);
    call.flag("--compare", input.compare.as_ref());
    input.vary.iter().for_each(|vary| call.flag("--vary", Some(vary)));
    let folder = Path::new(&input.script.folder);
    let path = match &input.output {
        Some(output) => folder.join(output),
        None => call.file("MEMORY.md"),
    };
    call.add(["-o".to_owned(), path.display().to_string()]);
    the_command(&mut call, &input.script);
    let finished = call.run(context).await?;
    let is_whole = finished.code == Some(0);
    let Ok(document) = std::fs::read_to_string(&path) else {
        return Err(refused(&finished.printed));
    };
    let written = input.output.as_ref().map(|_| path.display().to_string());
    let output = ReportOutput { written, document, unfinished: !is_whole };
    failing(&finished, given(&output)?)
}

pub(super) async fn explain(
    input: Result<ExplainInput>,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResult> {
    let input = input?;
    let mut call = Call::new("explain", &input.folder, &input.limits)?;
    let file = match (&input.file, &input.text) {
        // As a whole path it is never read as a flag; behind `--` it would be a command.
        (Some(file), None) => Path::new(&input.folder).join(file).display().to_string(),
        (None, Some(text)) => {
            let path = call.file("message.txt");
            std::fs::write(&path, text).context("the text cannot be kept")?;
            path.display().to_string()
        }
        _ => {
            return Err(Hinted::error(
                "neither a file nor a text, or both",
                "pass `file`, or `text` with the message itself",
            ));
        }
    };
    call.json();
    input.questions.iter().for_each(|question| call.flag("--ask", Some(question)));
    call.add([file]);
    let finished = call.run(context).await?;
    let answer = answered(&finished)?;
    let verdict = short::maybe(answer, "/verdict").or_else(|| short::maybe(answer, "/answer"));
    let output = ExplainOutput {
        explanation: verdict.unwrap_or_else(|| described(answer)),
        causes: short::causes(answer),
        categories: short::categories(answer),
        lines: short::lines(answer),
        answers: short::answers(answer),
        notes: short::texts(answer, "/notes"),
    };
    given(&output)
}

/// A recording or a snapshot in a sentence.
fn described(answer: &Value) -> String {
    let size = |path: &str| {
        short::number(answer, path, "measured").map_or("not known".to_owned(), |it| it.shown)
    };
    format!(
        "the allocated peak is {}, the reserved one {}",
        size("/peak/allocated_bytes"),
        size("/peak/reserved_bytes")
    )
}

pub(super) async fn diff(
    input: Result<DiffInput>,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResult> {
    let input = input?;
    let mut call = Call::new("diff", &input.folder, &input.limits)?;
    call.json();
    call.add(["--".to_owned(), input.a, input.b]);
    let finished = call.run(context).await?;
    let answer = answered(&finished)?;
    let signed = |path: &str| short::at(answer, path).as_i64().unwrap_or(0);
    let output = DiffOutput {
        answer: short::text(answer, "/answer"),
        peak_delta_bytes: signed("/peak_delta_bytes"),
        reserved_delta_bytes: signed("/reserved_delta_bytes"),
        known: "measured",
        categories: short::deltas(answer, "/categories"),
        modules: short::deltas(answer, "/modules"),
        lines: short::deltas(answer, "/lines"),
    };
    given(&output)
}

pub(super) fn gpus(input: &GpusInput) -> Result<CallToolResult> {
    let wanted = input.name.clone().unwrap_or_default().to_lowercase();
    let is_meant = |card: &&::gpus::Card| {
        let title = card.shown_title().to_lowercase();
        card.name.contains(&wanted) || title.contains(&wanted)
    };
    let row = |card: &::gpus::Card| Gpu {
        name: card.name.to_owned(),
        title: card.shown_title().to_owned(),
        memory_bytes: card.memory_bytes,
        usable_bytes: card.usable_bytes(),
        context_known: if card.is_context_assumed() { "assumed" } else { "measured" },
        compute_capability: format!("{}.{}", card.compute_capability.0, card.compute_capability.1),
    };
    given(&GpusOutput { gpus: ::gpus::cards().iter().filter(is_meant).map(row).collect() })
}
