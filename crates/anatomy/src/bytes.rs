//! Sizes: read as people write them, printed in GiB. GiB and GB are never mixed up.

pub const GIB: u64 = 1 << 30;

pub const MIB: u64 = 1 << 20;

/// Units by their lower-case names.
const UNITS: [(&str, u64); 13] = [
    ("b", 1),
    ("kib", 1 << 10),
    ("mib", MIB),
    ("gib", GIB),
    ("tib", 1 << 40),
    ("ki", 1 << 10),
    ("mi", MIB),
    ("gi", GIB),
    ("ti", 1 << 40),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
];

/// Reads `16GiB`, `24GB`, `800MiB`, `1.5 GiB` or `512B`. A number without a unit is none: whoever types
/// `16` does not mean 16 bytes.
pub fn parse(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let split =
        text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit = unit.trim().to_ascii_lowercase();
    let number: f64 = number
        .replace('_', "")
        .parse()
        .map_err(|_| format!("`{text}` is not a size: write `16GiB`, `24GB`, `800MiB`"))?;
    let factor = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
    let factor = factor.ok_or_else(|| match unit.as_str() {
        "g" | "m" | "k" | "t" => {
            format!("`{text}` is ambiguous: write `{}iB` (1024) or `{}B` (1000)", text, text)
        }
        "" => format!("`{text}` has no unit: write `{text}GiB`, or `{text}B` for bytes"),
        _ => format!("`{text}` has an unknown unit: write `16GiB`, `24GB`, `800MiB`"),
    })?;
    let bytes = number * factor as f64;
    if !(1.0..=1e18).contains(&bytes) {
        return Err(format!("`{text}` is not a size of memory"));
    }
    Ok(bytes.round() as u64)
}

/// `12.34 GiB`, `820.0 MiB`, `512 B`: binary units, named.
pub fn text(bytes: u64) -> String {
    if GIB <= bytes {
        return format!("{:.2} GiB", bytes as f64 / GIB as f64);
    }
    if MIB <= bytes {
        return format!("{:.1} MiB", bytes as f64 / MIB as f64);
    }
    if 1024 <= bytes {
        return format!("{:.1} KiB", bytes as f64 / 1024.0);
    }
    format!("{bytes} B")
}

/// `11.40 ± 0.20 GiB`: both in the unit of the first.
pub fn with_error(bytes: u64, error: u64) -> String {
    let (unit, name, digits) = match () {
        () if GIB <= bytes => (GIB, "GiB", 2),
        () if MIB <= bytes => (MIB, "MiB", 1),
        () => return text(bytes),
    };
    let of = |bytes: u64| format!("{:.digits$}", bytes as f64 / unit as f64);
    format!("{} ± {} {name}", of(bytes), of(error))
}

/// `text`, rounded up: for sizes that are to be enough, also when they are typed in as printed.
pub fn text_up(bytes: u64) -> String {
    let shown = text(bytes);
    let unit = match () {
        () if GIB <= bytes => GIB as f64 / 100.0,
        () if MIB <= bytes => MIB as f64 / 10.0,
        () if 1024 <= bytes => 102.4,
        () => return shown,
    };
    match parse(&shown) {
        Ok(read) if read < bytes => text((bytes as f64 + unit / 2.0).ceil() as u64),
        _ => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_and_decimal_units_differ() {
        assert_eq!(parse("16GiB"), Ok(17_179_869_184));
        assert_eq!(parse("24GB"), Ok(24_000_000_000));
        assert_eq!(parse("1.5 gib"), Ok(1_610_612_736));
        assert_eq!(parse("800MiB"), Ok(838_860_800));
        assert_eq!(parse("1_000_000 B"), Ok(1_000_000));
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in ["", "GiB", "16 bananas", "-3GiB", "0", "1e9", "99999999999GiB", "16G", "16"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse("16").unwrap_err().contains("has no unit: write `16GiB`, or `16B`"));
        assert!(parse("16G").unwrap_err().contains("`16GiB` (1024) or `16GB` (1000)"));
    }

    #[test]
    fn what_is_rounded_up_is_enough_and_no_more() {
        for bytes in
            [1, 1023, 1025, MIB - 1, MIB + 1, 7 * MIB + 12_345, GIB - 1, GIB + 1, 15 * GIB / 7]
        {
            let read = parse(&text_up(bytes)).unwrap();
            let unit = match bytes {
                GIB.. => GIB / 100,
                MIB.. => MIB / 10,
                1024.. => 103,
                _ => 1,
            };
            assert!(bytes <= read && read < bytes + unit + 1, "{bytes}: {}", text_up(bytes));
        }
        assert_eq!(text_up(2 * GIB), "2.00 GiB");
    }

    #[test]
    fn sizes_are_printed_with_their_unit() {
        assert_eq!(text(25_414_860_800), "23.67 GiB");
        assert_eq!(text(581_959_680), "555.0 MiB");
        assert_eq!(text(512), "512 B");
    }
}
