//! The peak of a training is where something runs that is not trained: an encoder of images or texts.

use std::collections::HashSet;

use recording::{Category, Phase};

use crate::finding::Finding;
use crate::remedies::remedies;
use crate::scene::{Claims, Scene, Thing, remark};

/// Less than this part of the peak, in percent, is no reason for it.
const SHARE: u64 = 20;

pub(super) fn detect(scene: &Scene<'_>, _: &mut Claims) -> Vec<Finding> {
    let running = scene.at.raised_by.as_ref().map_or("", |origin| origin.module.as_str());
    if scene.is_inference() || scene.phase() != Some(Phase::Forward) {
        return Vec::new();
    }
    let facts = &scene.anatomy.facts;
    let idle = ["frozen", "untrained"].into_iter().flat_map(|kind| facts.of(kind));
    let idle: HashSet<&str> = idle.map(String::as_str).collect();
    let Some(encoder) = topmost(running, &idle) else { return Vec::new() };
    let is_inside = |module: &str| {
        module.strip_prefix(encoder).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let things = || scene.things.iter().enumerate();
    // Where a gradient flows through it, it is a part of what is trained.
    let is_followed = |thing: &Thing<'_>| thing.users.iter().any(|user| is_inside(user.module));
    let of_pass = |thing: &Thing<'_>| thing.is_of_a_pass() || thing.is(Category::Workspace);
    let members: Vec<usize> = things()
        .filter(|(_, thing)| of_pass(thing) && is_inside(thing.module()))
        .map(|(index, _)| index)
        .collect();
    let is_main =
        u128::from(scene.total) * u128::from(SHARE) <= u128::from(scene.bytes(&members)) * 100;
    if !is_main || things().any(|(_, thing)| is_followed(thing)) {
        return Vec::new();
    }
    let Some(finding) = remark(scene, &members) else { return Vec::new() };
    vec![Finding {
        title: format!("the peak is in {encoder}, which is not trained"),
        explanation: format!(
            "{encoder} ({}) runs inside of the step, without gradients. What it makes of a sample is the same in \
             every epoch if its input is.",
            scene.class(encoder)
        ),
        scales: "batch × what it sees".to_owned(),
        remedies: remedies!(scene, "encode-before", "encode-in-parts"),
        ..finding
    }]
}

/// The model, or the part right below it, that is not trained and in which this module lies. A layer deep inside, such
/// as one beside adapters, is none.
fn topmost<'a>(module: &'a str, idle: &HashSet<&str>) -> Option<&'a str> {
    let ends = module.match_indices('.').map(|(at, _)| at).chain([module.len()]);
    ends.take(2).map(|end| &module[..end]).find(|path| !path.is_empty() && idle.contains(path))
}
