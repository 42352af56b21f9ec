//! Workspaces when no real cuDNN can answer: a library with one engine that does convolutions and
//! attention.
//!
//! - Tensor-core kernels want channels innermost. An operand that has them elsewhere is copied into
//!   the workspace, so the workspace is the sum of such operands: input, filter and output.
//! - In fp32 only the large chips of Hopper and Blackwell work so. Other cards copy both inputs in
//!   any layout, and the output where it is a gradient with its channels elsewhere.
//! - The gradient of a 16-bit filter is summed in fp32: four bytes for each of its elements.
//! - Kernels without tensor cores, 1×1 filters and grouped convolutions need nothing.
//! - Attention needs nothing forward; backward it sums the gradient of the queries in fp32.
//!
//! Other graphs are refused, so that PyTorch takes another way where it has one. For attention it
//! has none: it chooses cuDNN before asking, and does not survive a refusal.

use std::ffi::c_int;
use std::sync::Arc;

use contract::work::Work;

use super::answers::Reply;
use super::descriptor::bytes_of;
use super::graph::{self, Node, Origin, attribute, kind};
use super::oracle::Question;

/// `CUDNN_STATUS_NOT_SUPPORTED`.
const NOT_SUPPORTED: c_int = 3000;

/// cuDNN's numbers of the types that the rules tell apart.
const FLOAT: c_int = 0;
const HALF: c_int = 2;
const BFLOAT16: c_int = 9;

/// Answers for a card of the given compute capability.
pub(crate) fn reply(node: &Node, question: Question, capability: (u32, u32)) -> Reply {
    use attribute::*;
    // Any graph is a graph, also the parts that attention is described by; engines are choosier.
    if (node.kind, question) == (kind::GRAPH, Question::Finalize) {
        return Reply::default();
    }
    let Some(task) = graph_of(node).and_then(task_of) else {
        return Reply::failure(NOT_SUPPORTED);
    };
    match question {
        Question::Finalize => Reply::default(),
        Question::Nodes { name: HEURISTIC_RESULTS | CONFIG_ENGINE, .. } => {
            Reply { count: 1, ..Reply::default() }
        }
        // No knobs to turn, no layouts to prefer.
        Question::Nodes { .. } => Reply::default(),
        Question::Values { name: PLAN_WORKSPACE | CONFIG_WORKSPACE, kind, .. } => {
            number(task.workspace(capability), kind)
        }
        Question::Values { name: ENGINE_INDEX | CONFIG_SHARED_MEMORY, kind, .. } => number(0, kind),
        Question::Values { name: GRAPH_ENGINES, kind, .. } => number(1, kind),
        // No notes about numerics or behaviour.
        Question::Values { .. } => Reply::default(),
    }
}

/// One number, in as many bytes as its type has.
fn number(value: i64, kind: c_int) -> Reply {
    let bytes = value.to_le_bytes()[..graph::bytes_of(kind).min(8)].to_vec();
    Reply { status: 0, count: 1, bytes }
}

/// The graph that a heuristic, engine, configuration or plan was made for.
pub(crate) fn graph_of(node: &Node) -> Option<&Node> {
    let part = |name: c_int| node.nodes(name).first().map(Arc::as_ref);
    let next = match (&node.origin, node.kind) {
        (Origin::Result { parent, .. }, _) => parent,
        (_, kind::GRAPH) => return Some(node),
        (_, kind::HEURISTIC) => part(attribute::HEURISTIC_GRAPH)?,
        (_, kind::ENGINE) => part(attribute::ENGINE_GRAPH)?,
        (_, kind::ENGINE_CONFIG) => part(attribute::CONFIG_ENGINE)?,
        (_, kind::PLAN) => part(attribute::PLAN_CONFIG)?,
        _ => return None,
    };
    graph_of(next)
}

/// What a plan does, as far as it can be told apart.
pub(crate) fn kind_of(plan: &Node) -> Work {
    match graph_of(plan).and_then(task_of) {
        Some(Task::Convolution(convolution)) => match convolution.kind {
            kind::FORWARD => Work::Forward,
            kind::BACKWARD_DATA => Work::BackwardData,
            _ => Work::BackwardFilter,
        },
        Some(Task::AttentionForward | Task::AttentionBackward(_)) => Work::Attention,
        None => Work::Cudnn,
    }
}

/// What a graph does.
enum Task<'a> {
    Convolution(&'a Node),
    AttentionForward,
    AttentionBackward(Operand),
}

fn task_of(graph: &Node) -> Option<Task<'_>> {
    let operations = graph.nodes(attribute::GRAPH_OPERATIONS);
    let of_kind = |kind: c_int| operations.iter().filter(move |node| node.kind == kind);
    let convolutions = [kind::FORWARD, kind::BACKWARD_DATA, kind::BACKWARD_FILTER];
    if let Some(convolution) = convolutions.iter().find_map(|kind| of_kind(*kind).next()) {
        return Some(Task::Convolution(convolution));
    }
    if let Some(attention) = of_kind(kind::ATTENTION_BACKWARD).next() {
        return Operand::of(attention, 2851).map(Task::AttentionBackward);
    }
    if of_kind(kind::ATTENTION).next().is_some() {
        return Some(Task::AttentionForward);
    }
    // Spelled out, attention multiplies two matrices forward and five backward, queries first.
    match of_kind(kind::MATMUL).count() {
        2 => Some(Task::AttentionForward),
        5 => Operand::of(of_kind(kind::MATMUL).next()?, 1520).map(Task::AttentionBackward),
        _ => None,
    }
}

impl Task<'_> {
    /// The workspace in bytes.
    fn workspace(&self, capability: (u32, u32)) -> i64 {
        match self {
            Task::Convolution(convolution) => convolution_workspace(convolution, capability),
            Task::AttentionForward => 0,
            Task::AttentionBackward(queries) => queries.elements().saturating_mul(4),
        }
    }
}

/// One operand of an operation.
#[derive(Clone, Debug)]
struct Operand {
    dtype: c_int,
    dimensions: Vec<i64>,
    strides: Vec<i64>,
}

impl Operand {
    fn of(operation: &Node, name: c_int) -> Option<Operand> {
        let tensor = operation.nodes(name).first()?;
        Some(Operand {
            dtype: tensor.enumeration(attribute::TENSOR_TYPE).ok()?,
            dimensions: tensor.integers(attribute::TENSOR_DIMENSIONS),
            strides: tensor.integers(attribute::TENSOR_STRIDES),
        })
    }

    fn elements(&self) -> i64 {
        self.dimensions.iter().fold(1, |product: i64, size| product.saturating_mul(*size))
    }

    fn channels(&self) -> i64 {
        self.dimensions.get(1).copied().unwrap_or(1)
    }

    fn has_channels_innermost(&self) -> bool {
        self.channels() == 1 || self.strides.get(1) == Some(&1)
    }

    fn is_16_bit(&self) -> bool {
        [HALF, BFLOAT16].contains(&self.dtype)
    }
}

fn convolution_workspace(convolution: &Node, capability: (u32, u32)) -> i64 {
    let (input, filter, output) = match convolution.kind {
        kind::FORWARD => (704, 703, 705),
        kind::BACKWARD_DATA => (710, 709, 711),
        _ => (716, 715, 717),
    };
    let operand = |name: c_int| Operand::of(convolution, name);
    let (Some(input), Some(filter), Some(output)) =
        (operand(input), operand(filter), operand(output))
    else {
        return 0;
    };
    workspace_of(convolution.kind, [&input, &filter, &output], capability)
}

/// The workspace for an input, a filter and an output, one of which is the result.
fn workspace_of(direction: c_int, operands: [&Operand; 3], capability: (u32, u32)) -> i64 {
    let [input, filter, output] = operands;
    let first_with_tensor_cores = match input.dtype {
        HALF => (7, 0),
        BFLOAT16 | FLOAT => (8, 0),
        _ => return 0,
    };
    let is_pointwise = filter.dimensions.iter().skip(2).all(|size| *size == 1);
    let is_grouped = input.channels() != filter.channels();
    if capability < first_with_tensor_cores || is_pointwise || is_grouped {
        return 0;
    }
    let result = match direction {
        kind::FORWARD => output,
        kind::BACKWARD_DATA => input,
        _ => filter,
    };
    let takes_any_layout = input.dtype == FLOAT && !(9..=10).contains(&capability.0);
    let is_copied = |operand: &Operand| match takes_any_layout {
        false => !operand.has_channels_innermost(),
        true if std::ptr::eq(operand, result) => {
            direction != kind::FORWARD && !operand.has_channels_innermost()
        }
        true => true,
    };
    let copies = operands
        .iter()
        .filter(|operand| is_copied(operand))
        .map(|operand| operand.elements().saturating_mul(bytes_of(operand.dtype) as i64))
        .fold(0, i64::saturating_add);
    let sums_in_fp32 = direction == kind::BACKWARD_FILTER && filter.is_16_bit();
    let sums = if sums_in_fp32 { filter.elements().saturating_mul(4) } else { 0 };
    copies.saturating_add(sums)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cudnn::graph::{Attribute, Draft, Value, value};

    const AMPERE: (u32, u32) = (8, 6);

    fn operand(dtype: c_int, dimensions: [i64; 4], channels_last: bool) -> Operand {
        let [_, c, h, w] = dimensions;
        let strides =
            if channels_last { [c * h * w, 1, c * w, c] } else { [c * h * w, h * w, w, 1] };
        Operand { dtype, dimensions: dimensions.to_vec(), strides: strides.to_vec() }
    }

    /// For data of 32 × 256 × 56 × 56.
    fn bytes(direction: c_int, dtype: c_int, filter: [i64; 4], channels_last: bool) -> i64 {
        let input = operand(dtype, [32, 256, 56, 56], channels_last);
        let output = input.clone();
        let filter = operand(dtype, filter, channels_last);
        workspace_of(direction, [&input, &filter, &output], AMPERE)
    }

    const SQUARE: [i64; 4] = [256, 256, 3, 3];

    #[test]
    fn operands_are_copied_unless_channels_are_innermost() {
        assert_eq!(bytes(kind::FORWARD, HALF, SQUARE, false), 2 * 51_380_224 + 1_179_648);
        assert_eq!(bytes(kind::FORWARD, HALF, SQUARE, true), 0);
        assert_eq!(bytes(kind::BACKWARD_FILTER, HALF, SQUARE, true), 2_359_296);
    }

    /// cuDNN 9.20 says 105,119,760 and 207,880,208 in NCHW, 105,119,760 and 105,119,760 in NHWC.
    #[test]
    fn fp32_inputs_are_copied_in_any_layout() {
        let (data, filter) = (102_760_448, 2_359_296);
        assert_eq!(bytes(kind::FORWARD, FLOAT, SQUARE, false), data + filter);
        assert_eq!(bytes(kind::BACKWARD_DATA, FLOAT, SQUARE, false), 2 * data + filter);
        assert_eq!(bytes(kind::FORWARD, FLOAT, SQUARE, true), data + filter);
        assert_eq!(bytes(kind::BACKWARD_DATA, FLOAT, SQUARE, true), data + filter);
    }

    #[test]
    fn some_convolutions_need_nothing() {
        assert_eq!(bytes(kind::FORWARD, FLOAT, [64, 256, 1, 1], false), 0);
        assert_eq!(bytes(kind::FORWARD, FLOAT, [256, 1, 3, 3], false), 0);
        let data = operand(FLOAT, [8, 8, 8, 8], false);
        assert_eq!(workspace_of(kind::FORWARD, [&data, &data, &data], (7, 5)), 0);
    }

    fn node(kind: c_int, attributes: Vec<(c_int, Value)>) -> Arc<Node> {
        let mut draft = Draft::new(kind);
        for (name, value) in attributes {
            draft.set(Attribute { name, kind: value::INT64, value });
        }
        Arc::new(Node::built(draft))
    }

    #[test]
    fn a_plan_leads_back_to_its_graph() {
        let graph_with = |operation: c_int| {
            let operation = Value::Nodes(vec![node(operation, Vec::new())]);
            node(kind::GRAPH, vec![(attribute::GRAPH_OPERATIONS, operation)])
        };
        let ask = |graph: Arc<Node>| {
            let heuristic = node(kind::HEURISTIC, vec![(201, Value::Nodes(vec![graph]))]);
            let config = Arc::new(Node::result(kind::ENGINE_CONFIG, &heuristic, 202, 0, None));
            let plan = node(kind::PLAN, vec![(401, Value::Nodes(vec![config]))]);
            reply(&plan, Question::Finalize, AMPERE).status
        };
        assert_eq!(ask(graph_with(kind::FORWARD)), 0);
        assert_eq!(ask(graph_with(kind::ATTENTION)), 0);
        assert_eq!(ask(graph_with(kind::MATMUL)), NOT_SUPPORTED);
    }
}
