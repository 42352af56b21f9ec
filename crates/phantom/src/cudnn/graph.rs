//! Backend descriptors as the phantom keeps them: what was set, and where results came from.
//!
//! A descriptor is a [`Draft`] until it is finalized and a [`Node`] afterwards. Nodes never change
//! and point at the nodes they were made of, so a node outlives the handles by which PyTorch knew
//! its parts. Its key digests all of them and names the node in the cache of answers.

use std::ffi::c_int;
use std::sync::{Arc, Mutex, OnceLock};

use contract::work::Source;

use super::digest::Digest;
use super::real::Twin;
use crate::error::Failure;
use crate::state::lock;

/// `cudnnBackendDescriptorType_t`, as far as the phantom tells them apart.
pub(crate) mod kind {
    use std::ffi::c_int;
    pub(crate) const ENGINE: c_int = 2;
    pub(crate) const ENGINE_CONFIG: c_int = 3;
    pub(crate) const HEURISTIC: c_int = 4;
    pub(crate) const PLAN: c_int = 5;
    pub(crate) const FORWARD: c_int = 10;
    pub(crate) const BACKWARD_FILTER: c_int = 11;
    pub(crate) const BACKWARD_DATA: c_int = 12;
    pub(crate) const GRAPH: c_int = 15;
    pub(crate) const VARIANT_PACK: c_int = 16;
    pub(crate) const MATMUL: c_int = 19;
    pub(crate) const KERNEL_CACHE: c_int = 34;
    pub(crate) const DEVICE: c_int = 38;
    pub(crate) const ATTENTION: c_int = 41;
    pub(crate) const ATTENTION_BACKWARD: c_int = 43;
}

/// `cudnnBackendAttributeName_t`, as far as the phantom tells them apart.
pub(crate) mod attribute {
    use std::ffi::c_int;
    pub(crate) const HEURISTIC_GRAPH: c_int = 201;
    pub(crate) const HEURISTIC_RESULTS: c_int = 202;
    pub(crate) const HEURISTIC_DEVICE: c_int = 204;
    pub(crate) const CONFIG_ENGINE: c_int = 300;
    pub(crate) const CONFIG_WORKSPACE: c_int = 303;
    pub(crate) const CONFIG_SHARED_MEMORY: c_int = 304;
    pub(crate) const PLAN_CONFIG: c_int = 401;
    pub(crate) const PLAN_WORKSPACE: c_int = 402;
    pub(crate) const PLAN_DEVICE: c_int = 407;
    pub(crate) const GRAPH_OPERATIONS: c_int = 801;
    pub(crate) const GRAPH_ENGINES: c_int = 802;
    pub(crate) const TENSOR_TYPE: c_int = 901;
    pub(crate) const TENSOR_DIMENSIONS: c_int = 902;
    pub(crate) const TENSOR_STRIDES: c_int = 903;
    pub(crate) const VARIANT_PACK_WORKSPACE: c_int = 1003;
    pub(crate) const ENGINE_GRAPH: c_int = 1300;
    pub(crate) const ENGINE_INDEX: c_int = 1301;
    pub(crate) const ENGINE_DEVICE: c_int = 1307;
    pub(crate) const DEVICE_TEXT: c_int = 2702;
}

/// `cudnnBackendAttributeType_t`, as far as the phantom tells them apart.
pub(crate) mod value {
    use std::ffi::c_int;
    pub(crate) const HANDLE: c_int = 0;
    pub(crate) const INT64: c_int = 3;
    pub(crate) const ADDRESS: c_int = 6;
    pub(crate) const DESCRIPTOR: c_int = 15;
    pub(crate) const CHAR: c_int = 24;
}

/// Bytes of one value of an attribute type; enumerations are C integers.
pub(crate) fn bytes_of(value_kind: c_int) -> usize {
    match value_kind {
        2 | value::CHAR => 1,
        value::HANDLE | value::INT64 | 5 | value::ADDRESS | value::DESCRIPTOR => 8,
        // A fraction is two 64-bit integers.
        26 => 16,
        _ => 4,
    }
}

/// One attribute as it was set.
#[derive(Debug)]
pub(crate) struct Attribute {
    pub(crate) name: c_int,
    pub(crate) kind: c_int,
    pub(crate) value: Value,
}

#[derive(Debug)]
pub(crate) enum Value {
    Bytes(Vec<u8>),
    Nodes(Vec<Arc<Node>>),
}

/// A descriptor that is not finalized yet.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) kind: c_int,
    pub(crate) attributes: Vec<Attribute>,
}

impl Draft {
    pub(crate) fn new(kind: c_int) -> Draft {
        Draft { kind, attributes: Vec::new() }
    }

    /// Sets an attribute; a second value replaces the first, as in cuDNN.
    pub(crate) fn set(&mut self, attribute: Attribute) {
        match self.attributes.iter_mut().find(|old| old.name == attribute.name) {
            Some(old) => *old = attribute,
            None => self.attributes.push(attribute),
        }
    }
}

/// Where a node came from.
#[derive(Debug)]
pub(crate) enum Origin {
    Built(Vec<Attribute>),
    /// The value at `index` of an attribute of `parent`, as an engine config of a heuristic is.
    Result {
        parent: Arc<Node>,
        attribute: c_int,
        index: usize,
    },
}

/// A finalized descriptor.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) kind: c_int,
    pub(crate) origin: Origin,
    pub(crate) key: u128,
    /// The same descriptor in the real library, made when it is first needed.
    pub(crate) twin: Mutex<Option<Twin>>,
    /// What was said about its work area: who said it, and how many bytes.
    pub(crate) workspace: OnceLock<(Source, u64)>,
}

impl Node {
    pub(crate) fn built(draft: Draft) -> Node {
        let key = built_key(&draft);
        Node {
            kind: draft.kind,
            origin: Origin::Built(draft.attributes),
            key,
            twin: Mutex::default(),
            workspace: OnceLock::new(),
        }
    }

    pub(crate) fn result(
        kind: c_int,
        parent: &Arc<Node>,
        attribute: c_int,
        index: usize,
        twin: Option<Twin>,
    ) -> Node {
        let key = Digest::new()
            .field(b"result")
            .key(parent.key)
            .number(attribute.into())
            .number(index as i64)
            .finish();
        let origin = Origin::Result { parent: parent.clone(), attribute, index };
        Node { kind, origin, key, twin: Mutex::new(twin), workspace: OnceLock::new() }
    }

    /// Frees the twin; it is made anew if somebody asks what is not known yet.
    pub(crate) fn release(&self) {
        let twin = lock(&self.twin).take();
        drop(twin);
    }

    /// The nodes an attribute was set to.
    pub(crate) fn nodes(&self, name: c_int) -> &[Arc<Node>] {
        match self.attribute(name).map(|attribute| &attribute.value) {
            Some(Value::Nodes(nodes)) => nodes,
            _ => &[],
        }
    }

    /// The 64-bit integers an attribute was set to.
    pub(crate) fn integers(&self, name: c_int) -> Vec<i64> {
        match self.attribute(name).map(|attribute| &attribute.value) {
            Some(Value::Bytes(bytes)) => {
                bytes.as_chunks().0.iter().map(|b| i64::from_ne_bytes(*b)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The enumeration value an attribute was set to.
    pub(crate) fn enumeration(&self, name: c_int) -> Result<c_int, Failure> {
        match self.attribute(name).map(|attribute| &attribute.value) {
            Some(Value::Bytes(bytes)) => bytes.first_chunk().map(|b| c_int::from_ne_bytes(*b)),
            _ => None,
        }
        .ok_or(Failure::InvalidValue)
    }

    fn attribute(&self, name: c_int) -> Option<&Attribute> {
        let Origin::Built(attributes) = &self.origin else { return None };
        attributes.iter().find(|attribute| attribute.name == name)
    }
}

/// Whether cuDNN is told about an attribute, and the key with it: handles of a library that has no
/// device say nothing, and the device is always the phantom's card.
pub(crate) fn is_told(attribute: &Attribute) -> bool {
    let is_device = matches!(
        attribute.name,
        attribute::HEURISTIC_DEVICE | attribute::PLAN_DEVICE | attribute::ENGINE_DEVICE
    );
    attribute.kind != value::HANDLE && !is_device
}

/// The digest of a draft. Sorted: the order of the calls does not matter to cuDNN.
fn built_key(draft: &Draft) -> u128 {
    let digest = Digest::new().field(b"built").number(draft.kind.into());
    if draft.kind == kind::DEVICE {
        return digest.finish();
    }
    let mut told: Vec<&Attribute> = draft.attributes.iter().filter(|a| is_told(a)).collect();
    told.sort_by_key(|attribute| attribute.name);
    told.iter()
        .fold(digest, |digest, attribute| {
            let digest = digest.number(attribute.name.into()).number(attribute.kind.into());
            match &attribute.value {
                Value::Bytes(bytes) => digest.field(bytes),
                Value::Nodes(nodes) => {
                    nodes.iter().fold(digest, |digest, node| digest.key(node.key))
                }
            }
        })
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(dimensions: &[i64]) -> Draft {
        let bytes = dimensions.iter().flat_map(|size| size.to_ne_bytes()).collect();
        let mut draft = Draft::new(17);
        draft.set(Attribute {
            name: attribute::TENSOR_DIMENSIONS,
            kind: value::INT64,
            value: Value::Bytes(bytes),
        });
        draft
    }

    fn number(name: c_int, kind: c_int, number: i64) -> Attribute {
        Attribute { name, kind, value: Value::Bytes(number.to_ne_bytes().to_vec()) }
    }

    fn graph_of(part: Draft, handle: i64) -> Node {
        let mut draft = Draft::new(kind::GRAPH);
        draft.set(number(800, value::HANDLE, handle));
        let value = Value::Nodes(vec![Arc::new(Node::built(part))]);
        draft.set(Attribute { name: attribute::GRAPH_OPERATIONS, kind: value::DESCRIPTOR, value });
        Node::built(draft)
    }

    #[test]
    fn a_key_depends_on_every_part_and_on_no_handle() {
        let key = |dimensions: &[i64], handle| graph_of(tensor(dimensions), handle).key;
        assert_eq!(key(&[1, 2, 3], 5), key(&[1, 2, 3], 6));
        assert_ne!(key(&[1, 2, 3], 5), key(&[1, 3, 2], 5));
        assert_ne!(key(&[1, 2, 3], 5), key(&[1, 2, 3, 1], 5));
    }

    #[test]
    fn a_key_does_not_depend_on_the_order_of_calls() {
        let built = |order: [c_int; 2]| {
            let mut draft = Draft::new(17);
            order.iter().for_each(|name| draft.set(number(*name, value::INT64, i64::from(*name))));
            Node::built(draft).key
        };
        assert_eq!(built([902, 903]), built([903, 902]));
        assert_ne!(built([902, 903]), built([902, 904]));
    }

    #[test]
    fn a_second_value_replaces_the_first() {
        let mut draft = tensor(&[4, 5]);
        draft.set(number(attribute::TENSOR_DIMENSIONS, value::INT64, 9));
        assert_eq!(Node::built(draft).integers(attribute::TENSOR_DIMENSIONS), [9]);
    }

    #[test]
    fn results_are_told_apart_by_their_place() {
        let parent = Arc::new(graph_of(tensor(&[1]), 0));
        let result = |attribute, index| Node::result(3, &parent, attribute, index, None).key;
        assert_ne!(result(202, 0), result(202, 1));
        assert_ne!(result(202, 0), result(300, 0));
    }
}
