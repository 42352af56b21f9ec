//! Why a request failed, in one or two sentences: what was asked for beside what was free, what kept
//! the free memory from it, and which settings would have helped.

use crate::bytes::text;
use study::fragments::{Cause, SettingsTrial, Shortage};

/// Both sentences as one text.
pub(crate) fn why(shortage: &Shortage) -> String {
    sentences(shortage).join(". ")
}

/// What was not there, then why not and what would have helped.
pub(crate) fn sentences(shortage: &Shortage) -> [String; 2] {
    let cause = cause(shortage);
    [asked(shortage), remedy(shortage).map_or(cause.clone(), |remedy| format!("{cause}; {remedy}"))]
}

/// The request against the largest free block, and against what the card had left.
fn asked(shortage: &Shortage) -> String {
    let block = match shortage.own.largest_free_bytes {
        0 => "there was no free block for it".to_owned(),
        largest => format!("the largest free block for it has {}", text(largest)),
    };
    // Small requests take a whole segment from the card, for which its rest may not do.
    let is_for_segment = shortage.request_bytes <= shortage.card_free_bytes
        && shortage.card_free_bytes < shortage.segment_bytes;
    let segment = match is_for_segment {
        true => format!(" for a segment of {}", text(shortage.segment_bytes)),
        false => String::new(),
    };
    let (request, left) = (text(shortage.request_bytes), text(shortage.card_free_bytes));
    format!("No room for {request}: {block}, the card had {left} left{segment}")
}

/// PyTorch's message as far as it says what was asked for: its sizes stand in this report, and its advice is general.
pub(crate) fn message(whole: &str) -> String {
    let line = whole.lines().next().unwrap_or_default();
    let ends = line.match_indices(". ").map(|(at, _)| at + 1);
    // The exception's sentence, and what was tried.
    ends.take(2).last().map_or(line, |end| &line[..end]).to_owned()
}

fn cause(shortage: &Shortage) -> String {
    let own = &shortage.own;
    match shortage.cause {
        Cause::LargerThanCard => "It is more than PyTorch may have of this card".to_owned(),
        Cause::Scattered => {
            let blocks = if own.free_blocks == 1 { "block" } else { "blocks" };
            let (free, count) = (text(own.free_bytes), own.free_blocks);
            format!("{free} were free in {count} {blocks}, kept apart by blocks in use")
        }
        Cause::OtherStream => {
            let largest = text(shortage.other_streams_largest_bytes);
            format!("A free block of {largest} is another stream's, and streams do not share")
        }
        Cause::Waiting => {
            let waiting = text(own.waiting_bytes);
            format!("{waiting} were given back already, but another stream still used them")
        }
        Cause::OtherPools => format!("Cached, but not for it: {}", cached(shortage)),
        Cause::Limit => "The card had room: a limit of the process, as \
                         `set_per_process_memory_fraction` sets it, refused it"
            .to_owned(),
        Cause::Full => {
            let missing = text(shortage.missing_bytes);
            format!("Even without fragmentation, {missing} short")
        }
    }
}

/// Free memory that the request may not have, by whose it is.
fn cached(shortage: &Shortage) -> String {
    let kind = if shortage.own.pool.large { "of the small pool" } else { "of the large pool" };
    let pools = match shortage.own.pool.private {
        (0, 0) => "of private pools",
        _ => "of other pools",
    };
    let parts = [
        (shortage.own.free_bytes, "in too small blocks"),
        (shortage.other_streams_free_bytes, "of other streams"),
        (shortage.other_kind_free_bytes, kind),
        (shortage.other_pools_free_bytes, pools),
    ];
    let parts = parts.iter().filter(|(bytes, _)| *bytes != 0);
    let parts: Vec<String> =
        parts.map(|(bytes, whose)| format!("{} {whose}", text(*bytes))).collect();
    parts.join(", ")
}

/// What replays of the same requests say; nothing where settings cannot help or were not tried.
fn remedy(shortage: &Shortage) -> Option<String> {
    let Some(SettingsTrial { settings, modelled, .. }) = shortage.remedy() else {
        let might = matches!(
            shortage.cause,
            Cause::Scattered | Cause::OtherStream | Cause::Waiting | Cause::OtherPools
        );
        let none = "none of the allocator settings tried would have met this request";
        return (might && !shortage.trials.is_empty()).then(|| none.to_owned());
    };
    let settings = match settings.as_str() {
        "" => "the default allocator settings".to_owned(),
        settings => format!("`{settings}`"),
    };
    let modelled = if *modelled { " (modelled)" } else { "" };
    Some(format!("{settings} would have met this request{modelled}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::MIB;
    use study::fragments::{Pool, PoolUse};

    fn shortage(cause: Cause) -> Shortage {
        let pool = Pool { large: true, ..Pool::default() };
        Shortage {
            cause,
            request_bytes: 15 * MIB,
            segment_bytes: 16 * MIB,
            card_free_bytes: 2 * MIB,
            own: PoolUse {
                pool,
                free_bytes: 20 * MIB,
                free_blocks: 2,
                largest_free_bytes: 10 * MIB,
                waiting_bytes: 30 * MIB,
                ..PoolUse::default()
            },
            other_streams_largest_bytes: 18 * MIB,
            other_kind_free_bytes: MIB,
            other_pools_free_bytes: 3 * MIB,
            missing_bytes: 7 * MIB,
            ..Shortage::default()
        }
    }

    #[test]
    fn each_cause_has_its_sentence() {
        let asked = "No room for 15.0 MiB: the largest free block for it has 10.0 MiB, the card had \
                     2.0 MiB left. ";
        for (cause, expected) in [
            (Cause::LargerThanCard, "It is more than PyTorch may have of this card"),
            (Cause::Scattered, "20.0 MiB were free in 2 blocks, kept apart by blocks in use"),
            (
                Cause::OtherStream,
                "A free block of 18.0 MiB is another stream's, and streams do not share",
            ),
            (
                Cause::Waiting,
                "30.0 MiB were given back already, but another stream still used them",
            ),
            (
                Cause::OtherPools,
                "Cached, but not for it: 20.0 MiB in too small blocks, 1.0 MiB of the small pool, \
                 3.0 MiB of private pools",
            ),
            (Cause::Full, "Even without fragmentation, 7.0 MiB short"),
        ] {
            assert_eq!(why(&shortage(cause)), format!("{asked}{expected}"));
        }
    }

    #[test]
    fn a_remedy_is_named_only_if_a_replay_met_the_request() {
        let trial = |settings: &str, met| SettingsTrial {
            settings: settings.to_owned(),
            met,
            modelled: false,
        };
        let mut failed = shortage(Cause::Scattered);
        failed.trials = vec![trial("max_split_size_mb:128", false)];
        assert!(
            why(&failed)
                .ends_with("; none of the allocator settings tried would have met this request")
        );
        failed.trials.push(trial("expandable_segments:True", true));
        assert!(why(&failed).ends_with("; `expandable_segments:True` would have met this request"));
        failed.trials = vec![SettingsTrial { modelled: true, ..trial("", true) }];
        let end = "; the default allocator settings would have met this request (modelled)";
        assert!(why(&failed).ends_with(end));
    }

    #[test]
    fn a_rest_that_is_too_small_for_a_segment_is_said_to_be() {
        let failed = Shortage {
            request_bytes: 1536 * 1024,
            segment_bytes: 20 * MIB,
            own: PoolUse::default(),
            ..shortage(Cause::Full)
        };
        let start = "No room for 1.5 MiB: there was no free block for it, the card had 2.0 MiB left \
                     for a segment of 20.0 MiB. ";
        assert!(why(&failed).starts_with(start), "{}", why(&failed));
    }
}
