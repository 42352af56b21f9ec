//! Memory that grows with every step, and the reference that holds it.

use anatomy::{GrowthSite, bytes};
use recording::Category;

use crate::finding::Finding;
use crate::phrases::{evidence, place};
use crate::remedies::remedies;
use crate::scene::{Claims, Scene, Thing};

/// A leak has many steps to grow: it is worth a word if it is worth one after this many. A number that is kept of each
/// step, 512 bytes, is worth none.
const STEPS: u64 = 1_000;

pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    let growth = &scene.anatomy.growth;
    let Some(main) = growth.sites.first().filter(|_| is_leak(scene, growth.bytes_per_step)) else {
        return Vec::new();
    };
    let members = claims.free(scene, |thing| {
        growth.sites.iter().any(|site| is_of(thing, site))
            && thing.tensor.born.step < scene.at.when.step
    });
    if members.is_empty() {
        return Vec::new();
    }
    claims.take(&members);
    let keeps_graphs = growth.sites.iter().any(|site| site.category == Category::Activations);
    let kept = if keeps_graphs { "graphs of earlier steps" } else { "tensors of earlier steps" };
    let holder = match main.holder.as_str() {
        "" => String::new(),
        holder => format!(" What holds them is {holder}."),
    };
    vec![Finding {
        title: format!(
            "{kept} stay alive: {} more with every step",
            bytes::text(growth.bytes_per_step)
        ),
        bytes: scene.bytes(&members),
        explanation: format!(
            "Compared at the same point of {} steps, most of it is made at {}.{holder}",
            growth.steps,
            place((&main.origin.file, main.origin.line)),
        ),
        scales: "steps".to_owned(),
        evidence: evidence(scene, &members),
        remedies: remedies!(scene, "detach"),
        ..Finding::default()
    }]
}

fn is_leak(scene: &Scene<'_>, bytes_per_step: u64) -> bool {
    scene.is_worth(bytes_per_step.saturating_mul(STEPS))
}

/// Made at a place whose blocks pile up.
fn is_of(thing: &Thing<'_>, site: &GrowthSite) -> bool {
    let (own, other) = (&thing.tensor.origin, &site.origin);
    let lasting = [Category::Weights, Category::Gradients, Category::Optimizer];
    (&own.file, own.line, &own.module) == (&other.file, other.line, &other.module)
        && (&own.operator, &own.node) == (&other.operator, &other.node)
        && !lasting.contains(&thing.tensor.category)
}
