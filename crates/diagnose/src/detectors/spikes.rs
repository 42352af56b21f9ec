//! What an optimizer's step needs besides its state.

use recording::{Category, Phase};

use crate::finding::Finding;
use crate::remedies::remedies;
use crate::scene::{Claims, Scene};

pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    if scene.phase() != Some(Phase::Optimizer) {
        return Vec::new();
    }
    let members = claims.free(scene, |thing| {
        thing.is_of_a_pass()
            && !thing.is(Category::Activations)
            && thing.tensor.born.phase == Some(Phase::Optimizer)
    });
    let Some(finding) = claims.finding(scene, &members) else {
        return Vec::new();
    };
    let is_list = members.iter().any(|index| scene.things[*index].operator().contains("foreach"));
    let how = match (is_list, scene.anatomy.facts.of("optimizer").first()) {
        (true, _) => {
            "PyTorch's default works on lists of all parameters at once (foreach), so each \
                      intermediate result is as large as the model."
        }
        (false, _) => "They are made and dropped inside of optimizer.step().",
    };
    vec![Finding {
        title: "temporaries of optimizer.step()".to_owned(),
        explanation: format!("The peak is inside of the optimizer's step. {how}"),
        scales: "trainable parameters".to_owned(),
        remedies: match is_list {
            true => remedies!(scene, "fused-optimizer", "no-foreach"),
            false => remedies!(scene, "fused-optimizer"),
        },
        ..finding
    }]
}
