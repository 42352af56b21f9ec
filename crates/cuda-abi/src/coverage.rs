//! The tables as data: every function of the simulated libraries and who answers it.

/// How the phantom treats a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// A function of the phantom gives a true answer; the path names it.
    Answered(&'static str),
    /// Accepted and not done: work for the device, or a setting without effect on memory.
    Silent,
    /// Says its name once and returns "not supported".
    Refused,
}

/// One function of one library.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The library as its table is called, e.g. `cudart`.
    pub library: &'static str,
    /// The C name.
    pub name: &'static str,
    /// What happens when it is called.
    pub treatment: Treatment,
}

/// Every row of every table, in the order of the tables.
pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    macro_rules! collect {
        ($library:ident;
            answered { $($answer:path => fn $name:ident($($arguments:tt)*);)* }
            values { $($value:path => fn $vname:ident($($varguments:tt)*) -> $result:ty;)* }
            silent { $($checked:tt { $($silent:ident,)* })* }
            refused { $($refused:ident,)* }
        ) => {
            let library = stringify!($library);
            $(rows.push(Row { library, name: stringify!($name), treatment: Treatment::Answered(stringify!($answer)) });)*
            $(rows.push(Row { library, name: stringify!($vname), treatment: Treatment::Answered(stringify!($value)) });)*
            $($(rows.push(Row { library, name: stringify!($silent), treatment: Treatment::Silent });)*)*
            $(rows.push(Row { library, name: stringify!($refused), treatment: Treatment::Refused });)*
        };
    }
    crate::every_library!(collect);
    rows
}

/// The page `docs/reference/cuda-coverage.md`.
pub fn markdown() -> String {
    let rows = rows();
    let mut page = String::from(
        "# What the phantom answers\n\n\
         Generated from the tables in `crates/cuda-abi` (`UPDATE_GOLDEN=1 cargo test -p cuda-abi`).\n\n\
         *answered*: the phantom gives a true answer. *accepted*: work for the device, taken and not done. \
         *refused*: says its name once and returns \"not supported\"; with `FATHOM_STRICT=1` it aborts. \
         What an installed torch wants beyond these lists is refused too, by a stub written at launch.\n\n",
    );
    let mut libraries: Vec<&str> = rows.iter().map(|row| row.library).collect();
    libraries.dedup();
    page += "| library | answered | accepted | refused |\n| --- | ---: | ---: | ---: |\n";
    for library in &libraries {
        let count = |wanted: fn(&Treatment) -> bool| {
            rows.iter().filter(|row| row.library == *library && wanted(&row.treatment)).count()
        };
        page += &format!(
            "| {library} | {} | {} | {} |\n",
            count(|t| matches!(t, Treatment::Answered(_))),
            count(|t| *t == Treatment::Silent),
            count(|t| *t == Treatment::Refused),
        );
    }
    for library in &libraries {
        page += &format!("\n## {library}\n\n| function | treatment |\n| --- | --- |\n");
        for row in rows.iter().filter(|row| row.library == *library) {
            let treatment = match row.treatment {
                Treatment::Answered(path) => format!("answered by `{}`", path.replace(' ', "")),
                Treatment::Silent => "accepted".to_owned(),
                Treatment::Refused => "refused".to_owned(),
            };
            page += &format!("| `{}` | {treatment} |\n", row.name);
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_function_stands_twice() {
        let mut seen = HashSet::new();
        for row in rows() {
            assert!(seen.insert(row.name), "`{}` stands in two rows", row.name);
        }
    }

    fn check_page(name: &str, text: &str) {
        let path = format!("{}/../../docs/reference/{name}", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, text).unwrap();
        }
        let page = std::fs::read_to_string(path).unwrap_or_default();
        assert!(page == text, "`{name}` is stale: UPDATE_GOLDEN=1 cargo test -p cuda-abi");
    }

    #[test]
    fn the_page_is_fresh() {
        check_page("cuda-coverage.md", &markdown());
    }
}
