//! The peak of one process, by PyTorch's statistics and by its card's own count.

use contract::files::process::Moment;
use study::{Peak, PeakBytes};

use super::files::Seen;
use super::unattributed;

pub(super) fn of(seen: &Seen) -> Peak {
    let (index, device_bytes) = seen.device();
    let device = seen
        .process
        .as_ref()
        .and_then(|process| process.devices.iter().find(|d| d.device == index as u64));
    let moment = |moment: &Option<Moment>| {
        let Moment { bytes, phase, step } = moment.clone().unwrap_or_default();
        PeakBytes { bytes, phase, step }
    };
    let (page, nccl_bytes) = (&seen.page.devices[index], seen.page.devices[index].nccl);
    let by_card = PeakBytes { bytes: page.peak.saturating_sub(nccl_bytes), ..PeakBytes::default() };
    let whole = Peak {
        device_bytes,
        process_bytes: device_bytes,
        context_bytes: page.context,
        contexts: 1,
        nccl_bytes,
        ..Peak::default()
    };
    match device {
        Some(device) => {
            let by_pytorch = moment(&device.reserved);
            // A process that was killed did not say what it took last; its card did.
            let is_late = unattributed::is_cut_short(seen) && by_pytorch.bytes < by_card.bytes;
            Peak {
                requested: moment(&device.requested),
                allocated: moment(&device.allocated),
                reserved: if is_late { by_card } else { by_pytorch },
                ..whole
            }
        }
        // Without the doorway only the card's own count is known.
        None => Peak { reserved: by_card, ..whole },
    }
}
