//! The torch version and the allocator's settings of a snapshot, as far as it shows them.

use recording::{Event, Segment};

use crate::model::{AllocatorSettings, Form, Snapshot};

/// Settings that came inside the span of a form: they tell the newer version.
const NEWER: &[(Form, &str, &str)] = &[
    (Form::V2_5To2_7, "max_non_split_rounding_mb", "2.6"),
    (Form::V2_5To2_7, "pinned_use_background_threads", "2.6"),
    (Form::V2_10To2_11, "large_segment_size_mb", "2.11"),
    (Form::V2_14, "expandable_segments_reserve", "2.15"),
];

/// The oldest version of torch that writes this file.
pub(super) fn version(snapshot: &Snapshot) -> &'static str {
    let conf = snapshot.settings.as_ref().map_or("", |settings| &settings.conf);
    let newer = NEWER.iter().find(|(form, key, _)| *form == snapshot.form && conf.contains(key));
    if let Some((_, _, version)) = newer {
        return version;
    }
    match snapshot.form {
        Form::List => oldest_of_list(snapshot),
        Form::V2_0 => "2.0",
        Form::V2_1 => "2.1",
        Form::V2_2 => "2.2",
        Form::V2_3To2_4 => "2.3",
        Form::V2_5To2_7 => "2.5",
        Form::V2_8 => "2.8",
        Form::V2_9 => "2.9",
        Form::V2_10To2_11 => "2.10",
        Form::V2_12 => "2.12",
        Form::V2_13 => "2.13",
        Form::V2_14 => "2.14",
    }
}

/// `torch.cuda.memory_snapshot()` gives a plain list in every version; its keys still grew.
fn oldest_of_list(snapshot: &Snapshot) -> &'static str {
    if snapshot.segments.iter().any(|segment| segment.pool.is_some() || segment.is_expandable) {
        "2.1"
    } else if snapshot.segments.iter().any(|segment| segment.requested_size.is_some()) {
        "2.0"
    } else {
        "1.13"
    }
}

/// `PYTORCH_CUDA_ALLOC_CONF`: the text if the snapshot holds it, else what its fields come to.
///
/// `expandable_segments` outlives the text that set it, so the field, or a segment that grows, adds it.
pub(super) fn conf(snapshot: &Snapshot, finish: &[Segment], events: &[Event]) -> String {
    let settings = snapshot.settings.as_ref();
    let mut parts = match settings {
        Some(settings) if settings.conf.is_empty() => rebuilt(settings, snapshot.form),
        Some(settings) => vec![settings.conf.clone()],
        None => Vec::new(),
    };
    let expands = settings.is_some_and(|settings| settings.expandable_segments)
        || finish.iter().any(|segment| segment.expandable)
        || events.iter().any(|event| matches!(event, Event::SegmentMap { .. }));
    if expands && !parts.iter().any(|part| part.contains("expandable_segments:")) {
        parts.push("expandable_segments:True".to_owned());
    }
    parts.join(",")
}

fn rebuilt(settings: &AllocatorSettings, form: Form) -> Vec<String> {
    let mut parts = Vec::new();
    if let Ok(bytes) = u64::try_from(settings.max_split_size) {
        parts.push(format!("max_split_size_mb:{}", bytes >> 20));
    }
    let threshold = settings.garbage_collection_threshold;
    if 0.0 < threshold && threshold < 1.0 {
        parts.push(format!("garbage_collection_threshold:{threshold}"));
    }
    parts.extend(divisions(&settings.roundup_power2_divisions, form));
    parts
}

/// One number if all intervals share it, else a list.
fn divisions(table: &[(u64, u64)], form: Form) -> Option<String> {
    let (_, first) = table.first()?;
    if table.iter().all(|(_, parts)| parts == first) {
        return (*first != 0).then(|| format!("roundup_power2_divisions:{first}"));
    }
    // Before 2.4 a list holds no 0, and intervals it leaves out are 0 anyway.
    let listed = table.iter().filter(|(_, parts)| *parts != 0 || Form::V2_3To2_4 < form);
    let entries: Vec<String> = listed.map(|(start, parts)| format!("{start}:{parts}")).collect();
    Some(format!("roundup_power2_divisions:[{}]", entries.join(",")))
}
