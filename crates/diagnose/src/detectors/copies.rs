//! Averages, teachers and other copies of the model.

use recording::Category;

use crate::finding::Finding;
use crate::remedies::remedies;
use crate::scene::{Claims, Scene, Thing};

pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    let called = scene.anatomy.facts.of("copy_called");
    let is_called = |thing: &Thing<'_>| {
        called.iter().any(|prefix| thing.tensor.name.starts_with(prefix.as_str()))
    };
    let copies = |runs: bool| {
        move |thing: &Thing<'_>| thing.is(Category::ModelCopies) && is_called(thing) == runs
    };
    let averages = claims.free(scene, copies(false));
    let average = claims.finding(scene, &averages).map(|finding| Finding {
        title: "extra copy of the model (EMA or teacher)".to_owned(),
        remedies: remedies!(scene, "ema-cpu"),
        ..described(scene, finding)
    });
    let teachers = claims.free(scene, copies(true));
    let teacher = claims.finding(scene, &teachers).map(|finding| {
        let finding = described(scene, finding);
        Finding {
            title: "extra copy of the model that runs too (teacher or target network)".to_owned(),
            explanation: format!(
                "{} It is called in the steps, so it has to be on the GPU.",
                finding.explanation
            ),
            ..finding
        }
    });
    average.into_iter().chain(teacher).collect()
}

fn described(scene: &Scene<'_>, finding: Finding) -> Finding {
    let weights = scene.at.categories.of(Category::Weights);
    let times = finding.bytes as f64 / weights.max(1) as f64;
    Finding {
        explanation: format!(
            "Tensors of the parameters' shapes that no optimizer trains: {times:.1} × the weights."
        ),
        scales: "parameters".to_owned(),
        ..finding
    }
}
