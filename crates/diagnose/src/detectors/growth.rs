//! Memory that grows with every step, and the reference that holds it.

use anatomy::{GrowthSite, bytes};
use recording::Category;

use crate::finding::Finding;
use crate::phrases::{evidence, place};
use crate::remedies::remedies;
use crate::scene::{Claims, Scene, Thing};

/// A leak is worth a word however small: it has a thousand steps to grow.
pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    let growth = &scene.anatomy.growth;
    let Some(main) = growth.sites.first().filter(|_| growth.bytes_per_step != 0) else {
        return Vec::new();
    };
    let members = claims.free(scene, |thing| {
        growth.sites.iter().any(|site| is_of(thing, site))
            && thing.tensor.born.step < scene.at.when.step
    });
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

/// Made at a place whose blocks pile up.
fn is_of(thing: &Thing<'_>, site: &GrowthSite) -> bool {
    let (own, other) = (&thing.tensor.origin, &site.origin);
    let lasting = [Category::Weights, Category::Gradients, Category::Optimizer];
    (&own.file, own.line, &own.module) == (&other.file, other.line, &other.module)
        && (&own.operator, &own.node) == (&other.operator, &other.node)
        && !lasting.contains(&thing.tensor.category)
}
