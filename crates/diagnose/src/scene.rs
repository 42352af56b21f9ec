//! The moment that is looked at: everything alive there, and who has been claimed by a finding.

use std::collections::{HashMap, HashSet};

use anatomy::{Anatomy, Dissection, Tensor};
use recording::{Category, Phase};

use crate::finding::Finding;
use crate::roles::{Role, role};

/// The node of what torch's compiler has made of a part of the model.
const COMPILED: &str = "CompiledFunction";

/// Of one screen: 1 %.
const LEAST: u64 = 10;

/// A tensor that is alive, or the request that failed.
#[derive(Clone, Debug)]
pub struct Thing<'a> {
    /// As the anatomy has it.
    pub tensor: &'a Tensor,
    /// What autograd keeps it for.
    pub(crate) users: Vec<User<'a>>,
    /// It was asked for, and the card had no room.
    pub is_refused: bool,
    /// Its category could not be inferred: nothing can be said of it.
    pub is_open: bool,
}

/// A node of the backward pass that keeps a tensor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct User<'a> {
    /// `ConvolutionBackward0`
    pub(crate) node: &'a str,
    /// `input`
    pub(crate) field: &'a str,
    /// Path of the module of the forward pass; empty if not known.
    pub(crate) module: &'a str,
}

impl User<'_> {
    fn is_compiled(&self) -> bool {
        self.node.starts_with(COMPILED)
    }
}

/// Everything at one moment.
#[derive(Debug)]
pub struct Scene<'a> {
    /// The whole run.
    pub anatomy: &'a Anatomy,
    pub at: &'a Dissection,
    pub things: Vec<Thing<'a>>,
    /// Bytes of them all.
    pub total: u64,
    /// Less than this part of the whole, in thousandths, is not worth a finding of its own.
    pub least: u64,
    classes: HashMap<&'a str, &'a str>,
}

/// The request that ended the run, as a tensor that is not there.
pub(crate) fn refused(anatomy: &Anatomy, ended_by_memory: bool) -> Option<Tensor> {
    let refusal = anatomy.out_of_memory.as_ref().filter(|_| ended_by_memory)?;
    Some(Tensor {
        bytes: refusal.tried_bytes,
        block: refusal.tried_bytes,
        category: Category::Temporaries,
        origin: refusal.origin.clone(),
        born: refusal.at.when,
        ..Tensor::default()
    })
}

impl<'a> Scene<'a> {
    /// Looks at where memory ran out if a request is given that failed, else at the allocated peak.
    pub fn of(anatomy: &'a Anatomy, refused: Option<&'a Tensor>) -> Scene<'a> {
        let refusal = anatomy.out_of_memory.as_ref().filter(|_| refused.is_some());
        let at = refusal.map_or(&anatomy.allocated_peak, |refusal| &refusal.at);
        let thing = |tensor: &'a Tensor, is_refused| Thing {
            users: users(tensor),
            tensor,
            is_refused,
            is_open: anatomy.is_inferred && tensor.category == Category::Unknown,
        };
        let mut things: Vec<Thing<'a>> =
            refused.map(|tensor| thing(tensor, true)).into_iter().collect();
        things.extend(at.tensors.iter().map(|tensor| thing(tensor, false)));
        let total = sum(things.iter().map(|thing| thing.tensor.block));
        let modules = anatomy.modules.iter();
        let classes = modules.map(|(path, class)| (path.as_str(), class.as_str())).collect();
        Scene { anatomy, at, things, total, least: LEAST, classes }
    }

    /// The class of a module; empty if not known.
    pub(crate) fn class(&self, path: &str) -> &'a str {
        self.classes.get(path).copied().unwrap_or_default()
    }

    /// The phase of the moment.
    pub(crate) fn phase(&self) -> Option<Phase> {
        self.at.when.phase
    }

    /// Whether the script has no backward pass: nothing is trained.
    pub(crate) fn is_inference(&self) -> bool {
        let has = |wanted| self.anatomy.phases.iter().any(|row| row.when.phase == Some(wanted));
        has(Phase::Inference) && !has(Phase::Backward)
    }

    /// Whether the forward pass that runs made it.
    pub(crate) fn is_of_this_forward(&self, thing: &Thing<'_>) -> bool {
        let born = thing.tensor.born;
        born.phase == Some(Phase::Forward) && born.step == self.at.when.step
    }

    /// Is it enough for a finding?
    pub(crate) fn is_worth(&self, bytes: u64) -> bool {
        u128::from(self.total) * u128::from(self.least) <= u128::from(bytes) * 1000 && bytes != 0
    }

    /// Those of them that are wanted.
    pub(crate) fn part(
        &self,
        members: &[usize],
        is_wanted: impl Fn(&Thing<'_>) -> bool,
    ) -> Vec<usize> {
        members.iter().copied().filter(|index| is_wanted(&self.things[*index])).collect()
    }

    /// Bytes of blocks.
    pub(crate) fn bytes(&self, members: &[usize]) -> u64 {
        sum(members.iter().map(|index| self.things[*index].tensor.block))
    }
}

impl<'a> Thing<'a> {
    pub(crate) fn is(&self, category: Category) -> bool {
        self.tensor.category == category
    }

    /// Made by the passes themselves: neither state nor input nor scratch memory.
    pub(crate) fn is_of_a_pass(&self) -> bool {
        !self.is_open
            && matches!(
                self.tensor.category,
                Category::Activations | Category::Temporaries | Category::Unknown
            )
    }

    /// What a layer works on is no intermediate result of a loss or of attention.
    pub(crate) fn is_kept_for_a_layer(&self) -> bool {
        let layers =
            [Role::Linear, Role::RowNorm, Role::MapNorm, Role::Convolution, Role::FusedAttention];
        layers.iter().any(|layer| self.is_kept_for(*layer))
    }

    /// The module that made it.
    pub(crate) fn module(&self) -> &'a str {
        &self.tensor.origin.module
    }

    /// The operator of the forward pass; empty in a backward pass.
    pub(crate) fn operator(&self) -> &'a str {
        &self.tensor.origin.operator
    }

    /// What the operator or the node that made it is for.
    pub(crate) fn made_by(&self) -> Role {
        let origin = &self.tensor.origin;
        role(if origin.operator.is_empty() { &origin.node } else { &origin.operator })
    }

    /// What autograd keeps it for, the first of them; for a temporary what made it.
    pub(crate) fn kept_for(&self) -> Role {
        self.users.first().map_or_else(|| self.made_by(), |user| self.role_of(user))
    }

    /// Does autograd keep it for a node of this role?
    pub(crate) fn is_kept_for(&self, wanted: Role) -> bool {
        self.users.iter().any(|user| self.role_of(user) == wanted)
    }

    /// A compiled function keeps it as a whole: what made it says what for.
    fn role_of(&self, user: &User<'_>) -> Role {
        if user.is_compiled() { self.made_by() } else { role(user.node) }
    }

    /// Is it kept for what torch's compiler has made of a part of the model, and for nothing else?
    pub(crate) fn is_kept_by_compiled(&self) -> bool {
        !self.users.is_empty() && self.users.iter().all(User::is_compiled)
    }

    /// Its shape; empty if not known.
    pub(crate) fn shape(&self) -> &'a [u64] {
        &self.tensor.shape
    }

    /// How many elements, if the shape is known.
    pub(crate) fn elements(&self) -> Option<u64> {
        let mut sizes = self.tensor.shape.iter();
        let is_known = !self.tensor.dtype.is_empty();
        is_known.then(|| sizes.try_fold(1u64, |product, size| product.checked_mul(*size)))?
    }

    /// The user's file and line.
    pub(crate) fn line(&self) -> (&'a str, u32) {
        (&self.tensor.origin.file, self.tensor.origin.line)
    }

    /// What it is, in a word or by who keeps it.
    pub(crate) fn what(&self) -> String {
        match self.users.first() {
            _ if self.is_refused => "the request that failed".to_owned(),
            Some(user) => format!("{}.{}", user.node, user.field),
            None => self.tensor.category.name().replace('_', " "),
        }
    }
}

/// Files come from anywhere: a sum of what they say must not overflow.
pub(crate) fn sum(sizes: impl Iterator<Item = u64>) -> u64 {
    sizes.fold(0, u64::saturating_add)
}

/// `ConvolutionBackward0.input in down1.conv` and the others that keep a tensor.
fn users(tensor: &Tensor) -> Vec<User<'_>> {
    let others = tensor.also.iter().map(|(category, name)| (*category, name.as_str()));
    let names = std::iter::once((tensor.category, tensor.name.as_str())).chain(others);
    names.filter(|(category, _)| *category == Category::Activations).filter_map(user).collect()
}

fn user((_, name): (Category, &str)) -> Option<User<'_>> {
    let (what, module) = name.split_once(" in ").unwrap_or((name, ""));
    let (node, field) = what.split_once('.')?;
    Some(User { node, field, module })
}

/// Which things are counted by a finding.
#[derive(Debug)]
pub struct Claims {
    is_taken: Vec<bool>,
}

impl Claims {
    /// Nothing is claimed.
    pub fn new(scene: &Scene<'_>) -> Claims {
        Claims { is_taken: vec![false; scene.things.len()] }
    }

    /// Those that are still free and that are wanted.
    pub(crate) fn free(
        &self,
        scene: &Scene<'_>,
        is_wanted: impl Fn(&Thing<'_>) -> bool,
    ) -> Vec<usize> {
        let all = scene.things.iter().enumerate();
        all.filter(|(index, thing)| !self.is_taken[*index] && is_wanted(thing))
            .map(|(index, _)| index)
            .collect()
    }

    /// These, and what is free, of their sizes and modules, and of a shape that nobody noted: gradients
    /// that no node has taken up yet.
    pub(crate) fn with_shapeless(&self, scene: &Scene<'_>, mut members: Vec<usize>) -> Vec<usize> {
        let kind = |thing: &Thing<'_>| (thing.tensor.origin.module.clone(), thing.tensor.bytes);
        let kinds: HashSet<(String, u64)> =
            members.iter().map(|index| kind(&scene.things[*index])).collect();
        members.extend(self.free(scene, |thing| {
            thing.is_of_a_pass() && thing.tensor.dtype.is_empty() && kinds.contains(&kind(thing))
        }));
        members.sort_unstable();
        members.dedup();
        members
    }

    /// From here on they are counted.
    pub(crate) fn take(&mut self, members: &[usize]) {
        members.iter().for_each(|index| self.is_taken[*index] = true);
    }

    /// A finding that counts these, if they are worth one.
    pub(crate) fn finding(&mut self, scene: &Scene<'_>, members: &[usize]) -> Option<Finding> {
        let bytes = scene.bytes(members);
        if !scene.is_worth(bytes) {
            return None;
        }
        self.take(members);
        let evidence = crate::phrases::evidence(scene, members);
        Some(Finding { bytes, evidence, ..Finding::default() })
    }
}

/// A finding about things that others count.
pub(crate) fn remark(scene: &Scene<'_>, members: &[usize]) -> Option<Finding> {
    let bytes = scene.bytes(members);
    let evidence = crate::phrases::evidence(scene, members);
    scene.is_worth(bytes).then(|| Finding { bytes, evidence, ..Finding::default() })
}
