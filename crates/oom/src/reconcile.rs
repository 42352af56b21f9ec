//! Why two tools show two numbers: from what `nvidia-smi` shows down to what was counted by hand.

use crate::amount::Amount;
use crate::balance::{Ledger, Row};
use recording::Known;

/// The figures to bring together, as far as they are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reconciling {
    /// What `nvidia-smi` shows.
    pub smi: Option<Amount>,
    /// `max_memory_reserved`
    pub reserved: Option<Amount>,
    /// `max_memory_allocated`
    pub allocated: Option<Amount>,
    pub parameters: Option<u64>,
    pub card: Option<gpus::Card>,
}

impl Reconciling {
    /// Whether there is anything to bring together.
    pub fn is_empty(&self) -> bool {
        self.smi.or(self.reserved).or(self.allocated).is_none() && self.parameters.is_none()
    }
}

/// Two figures that cannot both be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// The one that is too large, as JSON names it.
    pub larger: &'static str,
    /// What it cannot exceed.
    pub smaller: &'static str,
    /// By how much it does.
    pub by: Amount,
}

/// The difference, line by line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reconciliation {
    /// Totals, each with the parts that sum to it.
    pub ledger: Ledger,
    /// What does not go together; nothing is ever made to fit.
    pub contradictions: Vec<Contradiction>,
}

/// Bytes of a parameter's weight in float32.
pub const WEIGHT_BYTES: u64 = 4;
/// And with its gradient and both averages of Adam.
pub const TRAINED_BYTES: u64 = 16;

/// Explains the figures from the outermost to the innermost.
pub fn reconcile(figures: &Reconciling) -> Reconciliation {
    let mut result = Reconciliation::default();
    let card = figures.card.as_ref();
    if let Some((card, smi)) = card.zip(figures.smi) {
        result.compare("smi", smi, "card", Amount::exactly(card.nominal_bytes()));
    }
    if let Some((reserved, smi)) = figures.reserved.zip(figures.smi) {
        result.compare("reserved", reserved, "smi", smi);
    }
    if let Some((allocated, outer)) = figures.allocated.zip(figures.reserved.or(figures.smi)) {
        let name = if figures.reserved.is_some() { "reserved" } else { "smi" };
        result.compare("allocated", allocated, name, outer);
    }
    result.outer(figures);
    result.inner(figures);
    result
}

impl Reconciliation {
    /// Nothing but what nvidia-smi shows, and perhaps the card.
    pub fn is_smi_alone(&self) -> bool {
        let inner = ["reserved", "allocated", "weights", "trained"];
        self.ledger.iter().any(|row| row.name == "smi")
            && !self.ledger.iter().any(|row| inner.contains(&row.name))
    }

    fn compare(
        &mut self,
        larger: &'static str,
        amount: Amount,
        smaller: &'static str,
        most: Amount,
    ) {
        if let (Some(false), Some(by)) = (most.at_least(amount), amount.minus(most)) {
            self.contradictions.push(Contradiction { larger, smaller, by });
        }
    }

    fn push(&mut self, name: &'static str, amount: Amount, known: Known, depth: u8) {
        self.ledger.push(Row { name, amount, known, depth });
    }

    /// `nvidia-smi` = reserved + context + the rest.
    fn outer(&mut self, figures: &Reconciling) {
        let Some(smi) = figures.smi else { return };
        let own = figures.reserved.or(figures.allocated);
        if own.is_none() {
            return self.alone(smi, figures.card.as_ref());
        }
        self.push("smi", smi, Known::Measured, 0);
        let Some(rest) = own.and_then(|own| smi.minus(own)) else { return };
        let name = if figures.reserved.is_some() { "reserved" } else { "allocated" };
        self.push(name, own.unwrap_or(smi), Known::Measured, 1);
        let Some(card) = &figures.card else {
            let name =
                if figures.reserved.is_some() { "outside_or_others" } else { "not_in_tensors" };
            self.push(name, rest, Known::Measured, 1);
            return;
        };
        // The context is never made larger than what there is to explain.
        let context = card.context_bytes.min(rest.high);
        self.push("context", Amount::exactly(context), Known::Assumed, 1);
        let rest = rest.minus(Amount::exactly(context)).unwrap_or(Amount::exactly(0));
        self.push("unexplained", rest, Known::Assumed, 1);
    }

    /// What `nvidia-smi` alone tells: at most so much of it is PyTorch's, and so much is left.
    fn alone(&mut self, smi: Amount, card: Option<&gpus::Card>) {
        let total = card.map(|card| Amount::exactly(card.nominal_bytes()));
        if let Some(total) = total {
            self.push("card", total, Known::Measured, 0);
            self.push("smi", smi, Known::Measured, 1);
            self.push("free", total.minus(smi).unwrap_or(Amount::exactly(0)), Known::Measured, 1);
        }
        self.push("smi", smi, Known::Measured, 0);
        // Of an unknown card, the smallest context of any.
        let least = || gpus::cards().iter().map(|card| card.context_bytes).min();
        let context = card.map(|card| card.context_bytes).or_else(least).unwrap_or(0);
        let context = Amount::exactly(context.min(smi.high));
        self.push("context", context, Known::Assumed, 1);
        let most = smi.minus(context).unwrap_or(Amount::exactly(0));
        self.push("at_most_pytorch", Amount::exactly(most.high), Known::Assumed, 1);
    }

    /// Reserved = allocated + cache and fragments; allocated = parameters + the rest.
    fn inner(&mut self, figures: &Reconciling) {
        if let Some((reserved, allocated)) = figures.reserved.zip(figures.allocated) {
            self.push("reserved", reserved, Known::Measured, 0);
            self.push("allocated", allocated, Known::Measured, 1);
            let cache = reserved.minus(allocated).unwrap_or(Amount::exactly(0));
            self.push("cache_and_fragments", cache, Known::Measured, 1);
        }
        let Some(parameters) = figures.parameters else { return };
        let times = |bytes: u64| Amount::exactly(parameters.saturating_mul(bytes));
        let (weights, trained) = (times(WEIGHT_BYTES), times(TRAINED_BYTES));
        let Some(allocated) = figures.allocated.or(figures.reserved).or(figures.smi) else {
            self.push("weights", weights, Known::Modelled, 0);
            self.push("trained", trained, Known::Modelled, 0);
            return;
        };
        let name = match (figures.allocated, figures.reserved) {
            (Some(_), _) => "allocated",
            (None, Some(_)) => "reserved",
            (None, None) => "smi",
        };
        self.compare("weights", weights, name, allocated);
        self.push(name, allocated, Known::Measured, 0);
        let (part, size) = match allocated.minus(trained) {
            Some(_) => ("trained", trained),
            None => ("weights", weights),
        };
        self.push(part, size, Known::Modelled, 1);
        let rest = allocated.minus(size).unwrap_or(Amount::exactly(0));
        self.push("not_parameters", rest, Known::Modelled, 1);
    }
}
