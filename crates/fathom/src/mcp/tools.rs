//! The tools: what each is called, what it takes and what it gives.

use anyhow::Result;
use rmcp::RoleServer;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, Tool, ToolAnnotations};
use rmcp::schemars::JsonSchema;
use rmcp::service::RequestContext;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::commands::{ask, diff, document, explain, fit, gpus, run, sweep};
use super::inputs::{
    AskInput, DiffInput, ExplainInput, FitInput, GpusInput, ReportInput, RunInput, SweepInput,
};
use super::outputs::{
    AskOutput, DiffOutput, ExplainOutput, FitOutput, GpusOutput, ReportOutput, RunOutput,
    SweepOutput,
};
use crate::error::{self, Hinted};

/// What all can be called.
pub(super) fn all() -> Vec<Tool> {
    vec![
        tool::<RunInput, RunOutput>(
            "run",
            "Where the GPU memory of a PyTorch training goes and whether it fits a GPU. Runs the unmodified script for a few steps on a simulated GPU: PyTorch's own peaks, causes with bytes and lines, what is not the cause. Needs no GPU. Takes seconds to minutes.",
        ),
        tool::<AskInput, AskOutput>(
            "ask",
            "Check a claim about GPU memory before you write it: would batch 16, checkpointing, LoRA, bf16, empty_cache … lower this script's peak, and by how much? Changes that a lever or a flag of the command can make are tried, and the difference is measured; others get an upper bound from who holds the peak.",
        ),
        tool::<FitInput, FitOutput>(
            "fit",
            "What to change so that a script fits a GPU: plans, each tried, with peak, cost, how far results change, and a patch. The mildest that fits is chosen. Takes minutes.",
        ),
        tool::<SweepInput, SweepOutput>(
            "sweep",
            "Values of a script's own settings on several GPUs: which fit, the largest that does, how the peak grows.",
        ),
        tool::<ReportInput, ReportOutput>(
            "report",
            "Write the document about a script's GPU memory: answer, anatomy, causes, scaling, what was tried, settings for smaller GPUs, the change as a diff; every number measured. Takes minutes.",
        ),
        tool::<ExplainInput, ExplainOutput>(
            "explain",
            "Explain an out-of-memory message, a log, a PyTorch memory snapshot or a recording.",
        ),
        tool::<DiffInput, DiffOutput>(
            "diff",
            "What grew and what shrank between two runs, recordings, snapshots or reports.",
        ),
        tool::<GpusInput, GpusOutput>("gpus", "The GPUs that can be named, with their memory."),
    ]
}

fn tool<I: JsonSchema + 'static, O: JsonSchema + 'static>(
    name: &'static str,
    says: &'static str,
) -> Tool {
    let starts_nothing = matches!(name, "explain" | "diff" | "gpus");
    let hints = ToolAnnotations::new().read_only(starts_nothing).open_world(false);
    Tool::new(name, says, JsonObject::new())
        .with_input_schema::<I>()
        .with_output_schema::<O>()
        .with_annotations(hints)
}

/// Calls one; what goes wrong is an error of the tool, with its hint, that an agent can read.
pub(super) async fn call(
    name: &str,
    arguments: JsonObject,
    context: &RequestContext<RoleServer>,
) -> CallToolResult {
    let answer = match name {
        "run" => run(read(arguments), context).await,
        "ask" => ask(read(arguments), context).await,
        "fit" => fit(read(arguments), context).await,
        "sweep" => sweep(read(arguments), context).await,
        "report" => document(read(arguments), context).await,
        "explain" => explain(read(arguments), context).await,
        "diff" => diff(read(arguments), context).await,
        "gpus" => read(arguments).and_then(|input| gpus(&input)),
        other => {
            Err(Hinted::error(format!("there is no tool `{other}`"), "`tools/list` names them"))
        }
    };
    answer.unwrap_or_else(|error| {
        CallToolResult::error(vec![ContentBlock::text(error::plain(&error))])
    })
}

fn read<I: DeserializeOwned>(arguments: JsonObject) -> Result<I> {
    serde_json::from_value(Value::Object(arguments)).map_err(|why| {
        Hinted::error(
            format!("the arguments are not as the tool takes them: {why}"),
            "`tools/list` has their schema",
        )
    })
}
