//! Files as people name them: from the folder that the command was given in.

use anatomy::Anatomy;

/// Files below the folder the command was given in are named from there, as people name them.
pub(crate) fn shorten(anatomy: &mut Anatomy, folder: &str) {
    let cut = |file: &mut String| below(folder, file);
    anatomy.out_of_memory.iter_mut().for_each(|refusal| cut(&mut refusal.origin.file));
    let refusal = anatomy.out_of_memory.as_mut().map(|refusal| &mut refusal.at);
    for at in [&mut anatomy.allocated_peak, &mut anatomy.reserved_peak].into_iter().chain(refusal) {
        at.raised_by.iter_mut().for_each(|origin| cut(&mut origin.file));
        at.lines.iter_mut().for_each(|line| cut(&mut line.file));
        at.tensors.iter_mut().for_each(|tensor| cut(&mut tensor.origin.file));
        at.alike.iter_mut().for_each(|alike| cut(&mut alike.first.origin.file));
    }
    anatomy.facts.cut(folder);
    for site in &mut anatomy.growth.sites {
        cut(&mut site.origin.file);
        site.holder = site.holder.replace(folder, "");
    }
}

/// A file below the folder is named from there.
pub(crate) fn below(folder: &str, file: &mut String) {
    if let Some(rest) = file.strip_prefix(folder) {
        *file = rest.to_owned();
    }
}
