//! Gated layers (SwiGLU and its like): a function of one half times the other half.

use std::collections::BTreeMap;

use recording::Category;

use crate::finding::Finding;
use crate::phrases::{modules, plural, tensor};
use crate::remedies::remedies;
use crate::roles::Role;
use crate::scene::{Claims, Scene, Thing};

/// What one gate keeps: the function's input and result, the other half, and the product.
const KEPT: usize = 4;

pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    let mut gates: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for index in claims.free(scene, |thing| thing.is(Category::Activations)) {
        if let Some(module) = multiplied_in(&scene.things[index]) {
            gates.entry(module).or_default().push(index);
        }
    }
    gates.retain(|_, halves| is_gate(scene, halves));
    let members = claims.free(scene, |thing| {
        thing.is(Category::Activations)
            && gates
                .iter()
                .any(|(module, halves)| belongs(thing, module, scene.things[halves[0]].elements()))
    });
    let Some(finding) = claims.finding(scene, &members) else { return Vec::new() };
    let (number, example) = (gates.len() as u64, &scene.things[members[0]]);
    let each = members.len().div_ceil(gates.len().max(1));
    vec![Finding {
        title: format!("gated layers (as SwiGLU) keep {each} tensors of their inner width each"),
        explanation: format!(
            "{number} gate{} {}: of each autograd keeps the function's input and its result, the other half and \
             the product, as {}. A fused function keeps one fewer; a checkpoint of the layer keeps none.",
            plural(number),
            modules(scene, &members),
            tensor(&example.tensor.dtype, example.shape())
        )
        .replace(" :", ":"),
        scales: "batch × tokens × inner width".to_owned(),
        remedies: remedies!(scene, "fused-function", "checkpoint"),
        ..finding
    }]
}

/// The module that multiplies it with something.
fn multiplied_in<'a>(thing: &Thing<'a>) -> Option<&'a str> {
    let of = thing.users.iter().find(|user| user.node.starts_with("MulBackward"))?;
    (!of.module.is_empty()).then_some(of.module)
}

/// One half comes from a function such as SiLU, the other from a layer, and they have one size.
fn is_gate(scene: &Scene<'_>, halves: &[usize]) -> bool {
    let [one, other] = halves else { return false };
    let (one, other) = (&scene.things[*one], &scene.things[*other]);
    let are = |first: Role, second: Role| one.made_by() == first && other.made_by() == second;
    one.elements().is_some()
        && one.elements() == other.elements()
        && (are(Role::Function, Role::Linear) || are(Role::Linear, Role::Function))
}

/// One of the tensors of a gate: kept or made in its module, and as large as its halves.
fn belongs(thing: &Thing<'_>, module: &str, elements: Option<u64>) -> bool {
    let is_inside = |path: &str| {
        path.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let is_of_gate = thing.is_kept_for(Role::Function)
        || thing.is_kept_for(Role::Arithmetic)
        || thing.made_by() == Role::Arithmetic;
    thing.elements() == elements
        && is_of_gate
        && thing.users.iter().any(|user| is_inside(user.module))
        && thing.users.len() <= KEPT
}
