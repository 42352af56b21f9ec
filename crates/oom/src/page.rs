//! The reference of families, as Markdown: `tests/families.rs` keeps the page like this.

use crate::facts::OF_CAUSES;
use crate::families::{Family, TABLE};

/// `docs/reference/messages.md`.
pub fn messages() -> String {
    let mut page = String::from(
        "# Messages that `fathom explain` knows\n\n\
         Generated from `crates/oom` (`UPDATE_GOLDEN=1 cargo test -p oom`); how they are read is said in \
         [concepts/oom.md](../concepts/oom.md). `family` is the name in JSON (`fathom.oom/1`), `memory` whose memory \
         it is. The second table has what the maintainers say, with the source.\n\n\
         | family | who speaks | memory | what it means where the numbers do not say more |\n\
         | --- | --- | --- | --- |\n",
    );
    for Family { id, speaker, memory, means, .. } in TABLE {
        page += &format!("| `{id}` | {speaker} | {} | {means} |\n", memory.name());
    }
    page += "\n| family | what is said about it | source |\n| --- | --- | --- |\n";
    for row in &OF_CAUSES {
        for fact in row.facts {
            page += &format!("| {} | {} | <{}> |\n", row.families, fact.says, fact.source);
        }
    }
    for family in TABLE {
        for fact in family.facts {
            page += &format!("| `{}` | {} | <{}> |\n", family.id, fact.says, fact.source);
        }
    }
    page
}
