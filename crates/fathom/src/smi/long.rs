//! `-q`, with or without `-d`: the long form, of which scripts mostly read the memory.

use contract::machine;

use super::Refused;
use super::machine::{Gpu, Machine};
use super::query::timestamp;

const MIB: u64 = 1 << 20;

/// Its name, and what it says of a card.
type Section = (&'static str, fn(&Gpu) -> String);

/// Sections by the names that `-d` has for them. BAR1 and reserved memory are left out: nobody knows them here, and
/// many scripts count lines up to "Free".
const SECTIONS: &[Section] = &[
    ("MEMORY", |gpu| {
        let rows = [("Total", gpu.card.memory_bytes), ("Used", gpu.used()), ("Free", gpu.free())];
        section(
            "FB Memory Usage",
            &rows.map(|(name, bytes)| (name, format!("{} MiB", bytes / MIB))),
        )
    }),
    ("UTILIZATION", |_| {
        let rows = ["Gpu", "Memory", "Encoder", "Decoder"].map(|name| (name, "0 %".to_owned()));
        section("Utilization", &rows)
    }),
    ("TEMPERATURE", |_| {
        section("Temperature", &[("GPU Current Temp", format!("{} C", machine::IDLE_TEMPERATURE))])
    }),
    ("POWER", |_| {
        let watts = f64::from(machine::IDLE_MILLIWATTS) / 1000.0;
        section("GPU Power Readings", &[("Power Draw", format!("{watts:.2} W"))])
    }),
    ("CLOCK", |gpu| {
        let rows = [("SM", gpu.card.clock_khz), ("Memory", gpu.card.memory_clock_khz)];
        section("Clocks", &rows.map(|(name, khz)| (name, format!("{} MHz", khz / 1000))))
    }),
    ("PIDS", |gpu| {
        let processes: String = gpu
            .processes
            .iter()
            .map(|process| {
                let used = format!("{} MiB", process.bytes / MIB);
                row(8, "Process ID", &process.pid.to_string())
                    + &row(12, "Type", "C")
                    + &row(12, "Name", &process.name)
                    + &row(12, "Used GPU Memory", &used)
            })
            .collect();
        match processes.as_str() {
            "" => row(4, "Processes", "None"),
            _ => format!("    Processes\n{processes}"),
        }
    }),
];

/// The sections that were asked for; all without any.
pub(super) fn form(machine: &Machine, names: &[String]) -> Result<String, Refused> {
    let find = |name: &String| {
        let known = SECTIONS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        known.ok_or_else(|| {
            let all: Vec<&str> = SECTIONS.iter().map(|(name, _)| *name).collect();
            let text = format!(
                "Fathom's stand-in for nvidia-smi does not know `-d {name}`. It knows {}.",
                all.join(", ")
            );
            Refused::new(1, text)
        })
    };
    let asked: Vec<_> = match names {
        [] => SECTIONS.iter().collect(),
        names => names.iter().map(find).collect::<Result<_, _>>()?,
    };
    let mut text = "\n==============NVSMI LOG==============\n\n".to_owned();
    text += &row(0, "Timestamp", &timestamp());
    text += &row(0, "Driver Version", machine.driver);
    text += &row(0, "CUDA Version", &machine.cuda);
    text += &format!("\n{}", row(0, "Attached GPUs", &machine.count.to_string()));
    for gpu in &machine.gpus {
        text += &format!("GPU {}\n", gpu.bus());
        if names.is_empty() {
            text += &row(4, "Product Name", gpu.card.title);
            text += &row(4, "GPU UUID", &gpu.uuid());
        }
        asked.iter().for_each(|(_, section)| text += &section(gpu));
        text += "\n";
    }
    Ok(text)
}

fn section(title: &str, rows: &[(&str, String)]) -> String {
    let rows: String = rows.iter().map(|(name, value)| row(8, name, value)).collect();
    format!("    {title}\n{rows}")
}

fn row(indent: usize, name: &str, value: &str) -> String {
    format!("{:<42}: {value}\n", format!("{}{name}", " ".repeat(indent)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Machine {
        // The reader takes the same figures twice for one card that is said twice.
        let card = |index| gpus::find("rtx3090").unwrap().with_used((300 + index as u64) * MIB);
        let gpus = (0..2).map(|index| Gpu { index, card: card(index), processes: Vec::new() });
        Machine { driver: "580.1", cuda: "13.0".to_owned(), gpus: gpus.collect(), count: 2 }
    }

    fn form_of(names: &[&str]) -> Result<String, String> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        form(&machine(), &names).map_err(|refused| refused.text)
    }

    /// `nvidia-smi -q -d Memory | grep -A4 GPU | grep Free`, the third word.
    #[test]
    fn free_memory_stands_where_scripts_look_for_it() {
        let text = form_of(&["Memory"]).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let near = (0..lines.len())
            .filter(|at| lines[at.saturating_sub(4)..=*at].iter().any(|line| line.contains("GPU")));
        let free: Vec<&str> = near
            .map(|at| lines[at])
            .filter(|line| line.contains("Free"))
            .filter_map(|line| line.split_whitespace().nth(2))
            .collect();
        let expected = machine().gpus.into_iter().map(|gpu| (gpu.free() / MIB).to_string());
        assert_eq!(free, expected.collect::<Vec<_>>(), "{text}");
    }

    #[test]
    fn our_own_reader_understands_it() {
        assert_eq!(oom::read(&form_of(&[]).unwrap()).len(), 2);
        assert!(form_of(&["ecc"]).unwrap_err().contains("does not know `-d ecc`"));
    }
}
