//! What a value of JSON must look like. Reading goes field by field: what is not as it should be is named and
//! left out, and everything around it is kept.

use std::collections::BTreeMap;

use serde_json::Value;

/// Something that a file may hold.
pub trait Shape: Sized {
    /// Its type in Python.
    fn python() -> String;

    /// Reads it; `None`, with the place among the problems, if it is something else.
    fn read(value: &Value, at: &str, problems: &mut Vec<String>) -> Option<Self>;

    /// What a field holds that is not there; `None` if it must be there.
    fn absent() -> Option<Self> {
        None
    }
}

/// A field of a record.
#[derive(Clone, Debug)]
pub struct Field {
    /// As JSON and Python have it.
    pub name: &'static str,
    /// Its type in Python.
    pub python: String,
    /// Whether it may be left out.
    pub optional: bool,
    /// What it means.
    pub about: &'static str,
}

/// An object whose fields are known.
pub trait Record: Shape + Default {
    /// As the type is called.
    const NAME: &'static str;
    /// What it is.
    const ABOUT: &'static str;

    /// In the order in which they are written.
    fn fields() -> Vec<Field>;
}

macro_rules! scalars {
    ($($type:ty, $python:literal, $words:literal, $read:expr;)*) => {
        $(impl Shape for $type {
            fn python() -> String {
                $python.to_owned()
            }

            fn read(value: &Value, at: &str, problems: &mut Vec<String>) -> Option<$type> {
                let read: fn(&Value) -> Option<$type> = $read;
                let found = read(value);
                if found.is_none() {
                    problems.push(format!("`{at}` is no {}", $words));
                }
                found
            }
        })*
    };
}

scalars! {
    String, "str", "text", |value| value.as_str().map(str::to_owned);
    bool, "bool", "truth", Value::as_bool;
    u64, "int", "whole number", Value::as_u64;
    u32, "int", "whole number that is small enough", |value| value.as_u64()?.try_into().ok();
}

impl<T: Shape> Shape for Option<T> {
    fn python() -> String {
        format!("{} | None", T::python())
    }

    fn read(value: &Value, at: &str, problems: &mut Vec<String>) -> Option<Option<T>> {
        match value {
            Value::Null => Some(None),
            value => T::read(value, at, problems).map(Some),
        }
    }

    fn absent() -> Option<Option<T>> {
        Some(None)
    }
}

impl<T: Shape> Shape for Vec<T> {
    fn python() -> String {
        format!("list[{}]", T::python())
    }

    fn read(value: &Value, at: &str, problems: &mut Vec<String>) -> Option<Vec<T>> {
        let Some(items) = value.as_array() else {
            problems.push(format!("`{at}` is no list"));
            return None;
        };
        let read = |(index, item)| T::read(item, &format!("{at}[{index}]"), problems);
        Some(items.iter().enumerate().filter_map(read).collect())
    }
}

impl<T: Shape> Shape for BTreeMap<String, T> {
    fn python() -> String {
        format!("dict[str, {}]", T::python())
    }

    fn read(value: &Value, at: &str, problems: &mut Vec<String>) -> Option<BTreeMap<String, T>> {
        let Some(items) = value.as_object() else {
            problems.push(format!("`{at}` is no dictionary"));
            return None;
        };
        let mut read = |name: &String, item| T::read(item, &format!("{at}.{name}"), problems);
        Some(
            items
                .iter()
                .filter_map(|(name, item)| Some((name.clone(), read(name, item)?)))
                .collect(),
        )
    }
}

/// A field of an object; a default stands for what is missing or something else, and the problem is named.
pub(super) fn field<T: Shape + Default>(
    object: &Value,
    name: &str,
    at: &str,
    problems: &mut Vec<String>,
) -> T {
    let at = if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
    match (object.get(name), T::absent()) {
        (Some(value), _) => T::read(value, &at, problems).unwrap_or_default(),
        (None, Some(absent)) => absent,
        (None, None) => {
            problems.push(format!("`{at}` is missing"));
            T::default()
        }
    }
}

/// Records: `field: Type` each, or `field as "name": Type` where JSON calls it otherwise.
macro_rules! records {
    ($(
        #[doc = $about:literal]
        $record:ident {
            $(#[doc = $doc:literal] $field:ident $(as $json:literal)?: $type:ty,)*
        }
    )*) => {
        $(
            #[doc = $about]
            #[derive(Clone, Debug, Default, PartialEq)]
            pub struct $record {
                $(#[doc = $doc] pub $field: $type,)*
            }

            impl $crate::files::shape::Shape for $record {
                fn python() -> String {
                    stringify!($record).to_owned()
                }

                fn read(
                    value: &serde_json::Value,
                    at: &str,
                    problems: &mut Vec<String>,
                ) -> Option<$record> {
                    if !value.is_object() {
                        problems.push(format!("`{at}` is no dictionary"));
                        return None;
                    }
                    Some($record {
                        $($field: $crate::files::shape::field(
                            value,
                            records!(@name $field $($json)?),
                            at,
                            problems,
                        ),)*
                    })
                }
            }

            impl $crate::files::shape::Record for $record {
                const NAME: &'static str = stringify!($record);
                const ABOUT: &'static str = $about;

                fn fields() -> Vec<$crate::files::shape::Field> {
                    vec![$($crate::files::shape::Field {
                        name: records!(@name $field $($json)?),
                        python: <$type as $crate::files::shape::Shape>::python(),
                        optional: <$type as $crate::files::shape::Shape>::absent().is_some(),
                        about: $doc,
                    },)*]
                }
            }
        )*
    };
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $json:literal) => { $json };
}
pub(super) use records;
