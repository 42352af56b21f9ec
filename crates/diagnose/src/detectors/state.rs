//! What training a model takes whatever it is fed: weights, gradients, the optimizer's state.

use anatomy::bytes;
use recording::Category;

use crate::finding::Finding;
use crate::phrases::count;
use crate::remedies::{Remedy, remedies};
use crate::scene::{Claims, Scene, Thing};

const KINDS: [Category; 3] = [Category::Weights, Category::Gradients, Category::Optimizer];

pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    let members = claims.free(scene, |thing| KINDS.contains(&thing.tensor.category));
    let Some(finding) = claims.finding(scene, &members) else { return Vec::new() };
    let part = |category: Category| {
        let of = scene.part(&members, |thing| thing.is(category));
        (scene.bytes(&of) != 0)
            .then(|| format!("{} {}", category.name(), bytes::text(scene.bytes(&of))))
    };
    let parts: Vec<String> = KINDS.into_iter().filter_map(part).collect();
    let counts = scene.anatomy.parameters.map_or(String::new(), |counts| {
        let each = finding.bytes as f64 / counts.total.max(1) as f64;
        format!(" {} parameters, {each:.1} bytes for each.", count(counts.total))
    });
    let adapters = scene.part(&members, |thing| is_adapter(&thing.tensor.name));
    let adapters = match scene.bytes(&adapters) {
        0 => String::new(),
        size => format!(
            " Of it adapters, with their gradients and optimizer state: {}.",
            bytes::text(size)
        ),
    };
    vec![Finding {
        title: match scene.is_inference() {
            true => "the model's weights".to_owned(),
            false => "model state: weights, gradients, optimizer".to_owned(),
        },
        explanation: format!("{}.{counts}{adapters} Independent of batch size.", parts.join(", ")),
        scales: "parameters".to_owned(),
        remedies: match scene.is_inference() {
            true => of_weights(scene, &members),
            false => of_training(scene, &members),
        },
        ..finding
    }]
}

/// A low-rank matrix beside a layer, as peft and its like name them.
fn is_adapter(name: &str) -> bool {
    name.contains(".lora_") || name.contains("lora_A") || name.contains("lora_B")
}

/// What is not done yet: a model whose larger part is frozen need not be told to freeze.
fn of_training(scene: &Scene<'_>, members: &[usize]) -> Vec<Remedy> {
    let long = |category: Category| {
        let is_long = |thing: &Thing<'_>| thing.is(category) && thing.tensor.dtype == "float32";
        scene.bytes(&scene.part(members, is_long))
    };
    let frozen = scene.anatomy.parameters.map_or((0, 0), |counts| (counts.frozen, counts.total));
    let is_mostly_frozen = frozen.1 <= frozen.0.saturating_mul(2) && frozen.0 != 0;
    let mut found = Vec::new();
    let weights = scene.bytes(&scene.part(members, |thing| thing.is(Category::Weights)));
    if is_mostly_frozen && weights < long(Category::Weights).saturating_mul(2) {
        found.extend(remedies!(scene, "half-frozen"));
    }
    if scene.is_worth(long(Category::Optimizer)) && has_two_moments(scene) {
        found.extend(remedies!(scene, "offload-optimizer", "8bit-optimizer", "adafactor"));
    }
    if !is_mostly_frozen {
        found.extend(remedies!(scene, "freeze"));
    }
    found
}

/// Adam and its like, with moments as wide as the weights.
fn has_two_moments(scene: &Scene<'_>) -> bool {
    let mut optimizers = scene.anatomy.facts.of("optimizer").iter();
    optimizers.any(|fact| {
        let class = fact.split_whitespace().next().unwrap_or_default().to_ascii_lowercase();
        class.contains("adam") && !class.contains("8bit") && !class.contains("4bit")
    })
}

/// Nothing but the weights is there to be made smaller.
fn of_weights(scene: &Scene<'_>, members: &[usize]) -> Vec<Remedy> {
    let long = scene.part(members, |thing| thing.tensor.dtype == "float32");
    let mut found = Vec::new();
    if scene.is_worth(scene.bytes(&long)) {
        found.extend(remedies!(scene, "half-weights"));
    }
    let is_wide = |thing: &Thing<'_>| {
        matches!(thing.tensor.dtype.as_str(), "float64" | "float32" | "float16" | "bfloat16")
    };
    let wide = scene.bytes(&scene.part(members, is_wide));
    if scene.bytes(members) < wide.saturating_mul(2) {
        found.extend(remedies!(scene, "quantise"));
    }
    found.extend(remedies!(scene, "model-offload"));
    found
}
