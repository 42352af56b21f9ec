//! Averages, teachers and other copies of the model.

use recording::Category;

use crate::finding::Finding;
use crate::remedies::remedies;
use crate::scene::{Claims, Scene};

pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    let members = claims.free(scene, |thing| thing.is(Category::ModelCopies));
    let weights = scene.at.categories.of(Category::Weights);
    let Some(finding) = claims.finding(scene, &members) else { return Vec::new() };
    let times = finding.bytes as f64 / weights.max(1) as f64;
    vec![Finding {
        title: "extra copy of the model (EMA or teacher)".to_owned(),
        explanation: format!(
            "Tensors of the parameters' shapes that no optimizer trains: {times:.1} × the weights."
        ),
        scales: "parameters".to_owned(),
        remedies: remedies!(scene, "ema-cpu"),
        ..finding
    }]
}
