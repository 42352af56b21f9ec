//! Graphs that a backward pass has not freed.

use recording::Category;

use crate::finding::Finding;
use crate::remedies::remedies;
use crate::scene::{Claims, Scene, Thing};

/// Activations that a finished backward pass has left alive.
pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    let facts = &scene.anatomy.facts;
    let asked = facts.of("retained");
    // A pass that makes a graph of its own needs the first one: the pass after it frees both.
    let is_needed_twice = asked.is_empty() && !facts.of("differentiated").is_empty();
    let most = u32::from(is_needed_twice);
    // cuDNN keeps the state of its random numbers for all graphs.
    let is_of_graphs =
        |thing: &Thing<'_>| thing.users.iter().any(|user| user.field != "dropout_state");
    // What was given to another model is of two graphs: the pass over the second has no use for the first.
    let is_given = |thing: &Thing<'_>| {
        thing.tensor.also.iter().any(|(category, _)| *category == Category::Inputs)
    };
    let members = claims.free(scene, |thing| {
        thing.is(Category::Activations)
            && !is_given(thing)
            && most < thing.tensor.outlived
            && is_of_graphs(thing)
    });
    let Some(finding) = claims.finding(scene, &members) else {
        return Vec::new();
    };
    let why = match asked.first() {
        Some(place) => format!("backward(retain_graph=True) is called at {place}."),
        None => "Something still refers to them, or to a result whose graph holds them.".to_owned(),
    };
    vec![Finding {
        title: "a graph stays alive after its backward pass".to_owned(),
        explanation: format!(
            "A backward pass has used these activations, and they are still there. {why}"
        ),
        scales: "what the graph keeps".to_owned(),
        remedies: remedies!(scene, "no-retain", "detach"),
        ..finding
    }]
}
