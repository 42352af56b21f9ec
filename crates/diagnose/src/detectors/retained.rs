//! Graphs that a backward pass has not freed.

use recording::Category;

use crate::finding::Finding;
use crate::remedies::remedies;
use crate::scene::{Claims, Scene};

/// Activations that a finished backward pass has left alive.
pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    let members = claims.free(scene, |thing| {
        thing.is(Category::Activations) && thing.tensor.outlived != 0 && !thing.users.is_empty()
    });
    let Some(finding) = claims.finding(scene, "retained-graph", &members) else {
        return Vec::new();
    };
    let asked = scene.anatomy.facts.of("retained");
    let why = match asked.first() {
        Some(place) => format!("backward(retain_graph=True) is called at {place}."),
        None => {
            "A reference to a result holds its graph, or part of it was not reached.".to_owned()
        }
    };
    vec![Finding {
        title: "a graph stays alive after its backward pass".to_owned(),
        explanation: format!(
            "These activations were there before a backward pass and are after it. {why}"
        ),
        scales: "what the graph keeps".to_owned(),
        remedies: remedies(&["no-retain", "detach"]),
        ..finding
    }]
}
