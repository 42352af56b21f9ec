//! Facts of the run as a JSON object. Unknown keys are passed over, missing ones change nothing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{About, Counters, Parameters, Saved};

/// The versioned mirror of [`About`].
#[derive(Default, Deserialize, Serialize)]
struct Facts {
    torch: Option<String>,
    allocator_settings: Option<String>,
    memory_bytes: Option<u64>,
    context_bytes: Option<u64>,
    device: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<ParameterFacts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    saved: Option<SavedFacts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    counters: Option<CounterFacts>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    facts: BTreeMap<String, Vec<String>>,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct SavedFacts {
    saved_bytes: u64,
    module_outputs_bytes: u64,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct ParameterFacts {
    total: u64,
    trainable: u64,
    frozen: u64,
    unused: u64,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct CounterFacts {
    allocated_peak: u64,
    reserved_peak: u64,
    requested_peak: u64,
    allocated: u64,
    reserved: u64,
}

/// Takes what the JSON says over what was known.
pub(super) fn merge(about: &mut About, json: &[u8]) -> Result<(), String> {
    let facts: Facts = serde_json::from_slice(json).map_err(|error| error.to_string())?;
    about.torch = facts.torch.unwrap_or(std::mem::take(&mut about.torch));
    about.allocator_settings =
        facts.allocator_settings.unwrap_or(std::mem::take(&mut about.allocator_settings));
    about.memory_bytes = facts.memory_bytes.unwrap_or(about.memory_bytes);
    about.context_bytes = facts.context_bytes.unwrap_or(about.context_bytes);
    about.device = facts.device.unwrap_or(about.device);
    if let Some(ParameterFacts { total, trainable, frozen, unused }) = facts.parameters {
        about.parameters = Some(Parameters { total, trainable, frozen, unused });
    }
    if let Some(SavedFacts { saved_bytes, module_outputs_bytes }) = facts.saved {
        about.saved = Some(Saved { kept: saved_bytes, outputs: module_outputs_bytes });
    }
    about.facts.merge(facts.facts);
    if let Some(facts) = facts.counters {
        about.counters = Some(Counters {
            allocated_peak: facts.allocated_peak,
            reserved_peak: facts.reserved_peak,
            requested_peak: facts.requested_peak,
            allocated: facts.allocated,
            reserved: facts.reserved,
        });
    }
    Ok(())
}

/// All facts as JSON; whether the recording is complete is no fact but a chunk.
pub(super) fn json(about: &About) -> Vec<u8> {
    let parameters = about.parameters.map(|Parameters { total, trainable, frozen, unused }| {
        ParameterFacts { total, trainable, frozen, unused }
    });
    let counters = about.counters.map(|counters| CounterFacts {
        allocated_peak: counters.allocated_peak,
        reserved_peak: counters.reserved_peak,
        requested_peak: counters.requested_peak,
        allocated: counters.allocated,
        reserved: counters.reserved,
    });
    let saved = about.saved.map(|Saved { kept, outputs }| SavedFacts {
        saved_bytes: kept,
        module_outputs_bytes: outputs,
    });
    let facts = Facts {
        torch: Some(about.torch.clone()),
        allocator_settings: Some(about.allocator_settings.clone()),
        memory_bytes: Some(about.memory_bytes),
        context_bytes: Some(about.context_bytes),
        device: Some(about.device),
        parameters,
        saved,
        counters,
        facts: about.facts.map().clone(),
    };
    serde_json::to_vec(&facts).expect("plain data serialises")
}
