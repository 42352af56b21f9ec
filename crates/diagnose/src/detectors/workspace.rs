//! Scratch memory of libraries.

use recording::Category;

use crate::finding::Finding;
use crate::phrases::{modules, place};
use crate::remedies::remedies;
use crate::scene::{Claims, Scene};

pub(super) fn detect(scene: &Scene<'_>, claims: &mut Claims) -> Vec<Finding> {
    let members = claims.free(scene, |thing| thing.is(Category::Workspace));
    let Some(finding) = claims.finding(scene, &members) else { return Vec::new() };
    let largest = &scene.things[members[0]];
    let benchmark = match scene.anatomy.facts.of("cudnn_benchmark").is_empty() {
        true => "",
        false => {
            " torch.backends.cudnn.benchmark is on: every kernel is tried, and the fastest is taken, whatever it needs."
        }
    };
    let soft = match largest.tensor.is_soft {
        true => " It is not needed: if the GPU has no room for it, PyTorch takes other kernels.",
        false => "",
    };
    // Recordings of earlier releases have one name for all work areas of cuDNN.
    let is_convolution = ["cuDNN conv", "cuDNN workspace", "cuDNN algorithm search"]
        .iter()
        .any(|name| largest.tensor.name.starts_with(name));
    // Sound and volumes have no such order of their channels.
    let class = scene.class(largest.module());
    let is_of_images = is_convolution && !class.contains("1d") && !class.contains("3d");
    let mut remedies = Vec::new();
    if is_convolution && !benchmark.is_empty() {
        remedies.extend(remedies!(scene, "cudnn-benchmark"));
    }
    if is_of_images {
        remedies.extend(remedies!(scene, "channels-last"));
    }
    // PyTorch keeps one for each handle and stream; its size is a setting.
    let is_kept = largest.tensor.name.starts_with("cuBLAS");
    let (when, scales) = match is_kept {
        // A snapshot does not always say which library it was.
        _ if largest.tensor.name.is_empty() => (
            "and given back right after, or kept by the library",
            "the shapes of that layer, by the library's rules",
        ),
        true => (
            "and kept for all further ones on this stream. Its size is that of \
             `CUBLAS_WORKSPACE_CONFIG`, or PyTorch's own for the GPU",
            "the number of streams; independent of all shapes",
        ),
        false => ("and given back right after", "the shapes of that layer, by the library's rules"),
    };
    vec![Finding {
        title: match largest.tensor.name.as_str() {
            "" => "scratch memory of a library".to_owned(),
            name => format!("scratch memory: {name}"),
        },
        explanation: format!(
            "The largest is asked for at {} {}, {when}.{soft}{benchmark}",
            place(largest.line()),
            modules(scene, &members[..1])
        ),
        scales: scales.to_owned(),
        remedies,
        ..finding
    }]
}
