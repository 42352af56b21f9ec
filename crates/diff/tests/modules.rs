//! Modules that were wrapped or renamed are known again, and those that may be others are not.

use diff::{Module, Side, Tensor, Totals, compare};

/// Modules `path class shape`; a shape is that of the only weight, `-` is none.
fn side(rows: &[&str]) -> Side {
    let mut side = Side::default();
    for row in rows {
        let words: Vec<&str> = row.split(' ').collect();
        let (path, class, shape) = (words[0].to_owned(), words[1].to_owned(), words[2]);
        side.modules.push(Module { path: path.clone(), class, own: 512, total: 512 });
        if shape != "-" {
            side.tensors.push(Tensor {
                bytes: 512,
                category: "weights".to_owned(),
                dtype: "float32".to_owned(),
                shape: shape.split('x').map(|size| size.parse().unwrap()).collect(),
                name: format!("{path}.weight"),
                module: path,
                ..Tensor::default()
            });
        }
    }
    side.totals = Totals { allocated: 512 * rows.len() as u64, ..Totals::default() };
    side
}

/// `now<was` for each module that was known under another name, `+new`, `-gone`.
fn changes(a: &[&str], b: &[&str]) -> Vec<String> {
    let rows = compare(&side(a), &side(b)).modules;
    let mut texts: Vec<String> = rows
        .iter()
        .filter_map(|row| match (&row.was, row.own.a, row.own.b) {
            (Some(was), ..) => Some(format!("{}<{was}", row.path)),
            (None, 0, _) => Some(format!("+{}", row.path)),
            (None, _, 0) => Some(format!("-{}", row.path)),
            _ => None,
        })
        .collect();
    texts.sort();
    texts
}

#[test]
fn wrappers_are_looked_through() {
    let a = ["Net Net -", "fc Linear 4x4", "blocks.0.act GELU -"];
    let wrapped = ["module Net -", "module.fc Linear 4x4", "module.blocks.0._orig_mod.act GELU -"];
    assert_eq!(
        changes(&a, &wrapped),
        ["module.blocks.0._orig_mod.act<blocks.0.act", "module.fc<fc", "module<Net"]
    );
    assert!(changes(&wrapped, &wrapped).is_empty());
}

#[test]
fn renamed_layers_are_known_by_class_and_shape_in_their_order() {
    let a = ["layers.0.fc Linear 4x4", "layers.1.fc Linear 4x4", "head Linear 9x4"];
    let b = ["blocks.0.fc Linear 4x4", "blocks.1.fc Linear 4x4", "out Linear 9x4"];
    assert_eq!(changes(&a, &b), ["blocks.0.fc<layers.0.fc", "blocks.1.fc<layers.1.fc", "out<head"]);
}

#[test]
fn what_lies_beside_a_renamed_layer_follows_it() {
    let a = ["old.fc Linear 4x4", "old.act GELU -", "old.drop Dropout -"];
    let b = ["new.fc Linear 4x4", "new.act GELU -", "new.drop Identity -"];
    assert_eq!(changes(&a, &b), ["+new.drop", "-old.drop", "new.act<old.act", "new.fc<old.fc"]);
}

#[test]
fn what_may_be_another_is_not_believed() {
    // One more of the same kind: which is new cannot be told.
    let a = ["a Linear 4x4", "b Linear 4x4"];
    let b = ["c Linear 4x4", "d Linear 4x4", "e Linear 4x4"];
    assert_eq!(changes(&a, &b), ["+c", "+d", "+e", "-a", "-b"]);
    // Another class, another shape.
    assert_eq!(changes(&["a Linear 4x4"], &["b Conv2d 4x4"]), ["+b", "-a"]);
    assert_eq!(changes(&["a Linear 4x4"], &["b Linear 4x5"]), ["+b", "-a"]);
}
