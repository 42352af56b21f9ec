//! `--query-gpu` and `--query-compute-apps`: rows of fields, as CSV.

use contract::machine;

use super::Refused;
use super::machine::{Gpu, Machine, Process};

const NOT_HERE: &str = "[N/A]";
const MIB: u64 = 1 << 20;

/// A field: its names, its unit, and what it is on a card. Where a card without an answer says nothing: [`NOT_HERE`].
struct Field {
    names: &'static [&'static str],
    unit: &'static str,
    value: fn(&Machine, &Gpu) -> String,
}

const fn field(
    names: &'static [&'static str],
    unit: &'static str,
    value: fn(&Machine, &Gpu) -> String,
) -> Field {
    Field { names, unit, value }
}

fn not_here(_: &Machine, _: &Gpu) -> String {
    NOT_HERE.to_owned()
}

fn clock(khz: u32) -> String {
    (khz / 1000).to_string()
}

fn power() -> String {
    format!("{:.2}", f64::from(machine::IDLE_MILLIWATTS) / 1000.0)
}

const FIELDS: &[Field] = &[
    field(&["timestamp"], "", |_, _| timestamp()),
    field(&["driver_version"], "", |machine, _| machine.driver.to_owned()),
    field(&["count"], "", |machine, _| machine.count.to_string()),
    field(&["name", "gpu_name"], "", |_, gpu| gpu.card.title.to_owned()),
    field(&["index"], "", |_, gpu| gpu.index.to_string()),
    field(&["uuid", "gpu_uuid"], "", |_, gpu| gpu.uuid()),
    field(&["serial", "gpu_serial"], "", not_here),
    field(&["pci.bus_id", "gpu_bus_id"], "", |_, gpu| gpu.bus()),
    field(&["pci.domain"], "", |_, _| "0x0000".to_owned()),
    field(&["pci.bus"], "", |_, gpu| format!("0x{:02X}", machine::bus_of(gpu.index))),
    field(&["pci.device"], "", |_, _| "0x00".to_owned()),
    field(&["pci.device_id"], "", |_, gpu| {
        format!("0x{:04X}{:04X}", gpu.card.pci_device_id, machine::VENDOR)
    }),
    field(&["compute_cap"], "", |_, gpu| {
        let (major, minor) = gpu.card.compute_capability;
        format!("{major}.{minor}")
    }),
    field(&["memory.total"], "MiB", |_, gpu| (gpu.card.memory_bytes / MIB).to_string()),
    field(&["memory.reserved"], "MiB", |_, _| "0".to_owned()),
    field(&["memory.used"], "MiB", |_, gpu| (gpu.used() / MIB).to_string()),
    field(&["memory.free"], "MiB", |_, gpu| (gpu.free() / MIB).to_string()),
    field(&["utilization.gpu"], "%", |_, _| "0".to_owned()),
    field(&["utilization.memory"], "%", |_, _| "0".to_owned()),
    field(&["temperature.gpu"], "", |_, _| machine::IDLE_TEMPERATURE.to_string()),
    field(&["temperature.memory"], "", |_, _| "N/A".to_owned()),
    field(&["power.draw", "power.draw.average", "power.draw.instant"], "W", |_, _| power()),
    field(&["power.limit", "enforced.power.limit", "power.max_limit"], "W", not_here),
    field(&["power.management"], "", |_, _| "Enabled".to_owned()),
    field(&["fan.speed"], "%", not_here),
    field(&["pstate"], "", |_, _| "P8".to_owned()),
    field(
        &["clocks.current.sm", "clocks.sm", "clocks.gr", "clocks.current.graphics"],
        "MHz",
        |_, gpu| clock(gpu.card.clock_khz),
    ),
    field(&["clocks.current.memory", "clocks.mem"], "MHz", |_, gpu| {
        clock(gpu.card.memory_clock_khz)
    }),
    field(&["clocks.max.sm", "clocks.max.graphics", "clocks.max.gr"], "MHz", |_, gpu| {
        clock(gpu.card.clock_khz)
    }),
    field(&["clocks.max.memory", "clocks.max.mem"], "MHz", |_, gpu| {
        clock(gpu.card.memory_clock_khz)
    }),
    field(&["compute_mode"], "", |_, _| "Default".to_owned()),
    field(&["persistence_mode"], "", |_, _| "Disabled".to_owned()),
    field(&["display_active", "display_mode"], "", |_, _| "Disabled".to_owned()),
    field(&["mig.mode.current", "mig.mode.pending"], "", not_here),
    field(&["ecc.mode.current", "ecc.mode.pending"], "", not_here),
    field(&["vbios_version"], "", not_here),
    field(&["pcie.link.gen.current", "pcie.link.gen.max"], "", not_here),
    field(&["pcie.link.width.current", "pcie.link.width.max"], "", not_here),
];

/// A field of a process.
type OfProcess = (&'static [&'static str], &'static str, fn(&Gpu, &Process) -> String);

const OF_PROCESSES: &[OfProcess] = &[
    (&["pid"], "", |_, process| process.pid.to_string()),
    (&["process_name", "name"], "", |_, process| process.name.clone()),
    (&["used_memory", "used_gpu_memory"], "MiB", |_, process| (process.bytes / MIB).to_string()),
    (&["gpu_uuid"], "", |gpu, _| gpu.uuid()),
    (&["gpu_name"], "", |gpu, _| gpu.card.title.to_owned()),
    (&["gpu_bus_id"], "", |gpu, _| gpu.bus()),
    (&["gpu_serial"], "", |_, _| NOT_HERE.to_owned()),
    (&["timestamp"], "", |_, _| timestamp()),
];

/// What `--help-query-gpu` shows.
pub(super) fn list_of_fields() -> String {
    let row = |names: &[&str]| format!("    {}\n", names.join(" or "));
    let gpus: String = FIELDS.iter().map(|field| row(field.names)).collect();
    let processes: String = OF_PROCESSES.iter().map(|(names, ..)| row(names)).collect();
    format!("--query-gpu\n{gpus}\n--query-compute-apps\n{processes}")
}

pub(super) fn gpus(
    machine: &Machine,
    names: &[String],
    format: &[String],
) -> Result<String, Refused> {
    let find = |name: &String| {
        let found = FIELDS.iter().find(|field| field.names.contains(&name.as_str()));
        found.ok_or_else(|| unknown(name))
    };
    let fields = names.iter().map(find).collect::<Result<Vec<_>, _>>()?;
    let csv = Csv::read(format)?;
    let rows = machine.gpus.iter().map(|gpu| {
        let cells = fields.iter().map(|field| csv.cell((field.value)(machine, gpu), field.unit));
        cells.collect()
    });
    Ok(csv.text(names.iter().zip(fields.iter().map(|field| field.unit)), rows.collect()))
}

pub(super) fn processes(
    machine: &Machine,
    names: &[String],
    format: &[String],
) -> Result<String, Refused> {
    let find = |name: &String| {
        let found = OF_PROCESSES.iter().find(|(names, ..)| names.contains(&name.as_str()));
        found.ok_or_else(|| unknown(name))
    };
    let fields = names.iter().map(find).collect::<Result<Vec<_>, _>>()?;
    let csv = Csv::read(format)?;
    let all = machine.gpus.iter().flat_map(|gpu| {
        let of_gpu = gpu.processes.iter();
        of_gpu.map(move |process| (gpu, process))
    });
    let rows = all.map(|(gpu, process)| {
        let cells = fields.iter().map(|(_, unit, value)| csv.cell(value(gpu, process), unit));
        cells.collect()
    });
    Ok(csv.text(names.iter().zip(fields.iter().map(|(_, unit, _)| *unit)), rows.collect()))
}

fn unknown(name: &str) -> Refused {
    Refused::new(2, format!("Field \"{name}\" is not a valid field to query.\n"))
}

/// How rows are written.
struct Csv {
    has_header: bool,
    has_units: bool,
}

impl Csv {
    fn read(format: &[String]) -> Result<Csv, Refused> {
        let has = |word: &str| format.iter().any(|each| each == word);
        if !has("csv") {
            let text =
                "\"--format=\" switch is missing. Select format by specifying \"--format=csv\".";
            return Err(Refused::new(1, text));
        }
        Ok(Csv { has_header: !has("noheader"), has_units: !has("nounits") })
    }

    fn cell(&self, value: String, unit: &str) -> String {
        let is_number = value.starts_with(|c: char| c.is_ascii_digit());
        if self.has_units && is_number && !unit.is_empty() {
            format!("{value} {unit}")
        } else {
            value
        }
    }

    fn text<'a>(
        &self,
        columns: impl Iterator<Item = (&'a String, &'a str)>,
        rows: Vec<Vec<String>>,
    ) -> String {
        let header = columns.map(|(name, unit)| match unit {
            "" => name.clone(),
            unit => format!("{name} [{unit}]"),
        });
        let header = self.has_header.then(|| header.collect());
        let lines = header.into_iter().chain(rows);
        lines.map(|cells: Vec<String>| cells.join(", ") + "\n").collect()
    }
}

/// `2026/11/19 04:40:00.000`, in UTC.
pub(super) fn timestamp() -> String {
    let now = std::time::SystemTime::now();
    let since = now.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let (seconds, days) = (since.as_secs() % 86_400, (since.as_secs() / 86_400) as i64);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!(
        "{year:04}/{month:02}/{day:02} {hour:02}:{minute:02}:{second:02}.{:03}",
        since.subsec_millis()
    )
}

/// The date of a day since 1970, in the Gregorian calendar: years that begin in March have the odd day last.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Machine {
        let card = gpus::find("rtx3090").unwrap().clone();
        let process = Process { pid: 7, name: "python".to_owned(), bytes: 300 * MIB };
        let gpu = Gpu { index: 0, card, processes: vec![process] };
        Machine { driver: "580.1", cuda: "13.0".to_owned(), gpus: vec![gpu], count: 1 }
    }

    fn words(line: &str) -> Vec<String> {
        line.split(',').map(str::to_owned).collect()
    }

    #[test]
    fn rows_have_units_and_a_header_unless_told_otherwise() {
        let ask = |fields: &str, format: &str| {
            gpus(&machine(), &words(fields), &words(format)).map_err(|refused| refused.text)
        };
        let fields = "name,memory.used,temperature.gpu,fan.speed";
        assert_eq!(
            ask(fields, "csv").unwrap(),
            "name, memory.used [MiB], temperature.gpu, fan.speed [%]\nNVIDIA GeForce RTX 3090, 300 MiB, 35, [N/A]\n"
        );
        assert_eq!(
            ask(fields, "csv,noheader,nounits").unwrap(),
            "NVIDIA GeForce RTX 3090, 300, 35, [N/A]\n"
        );
        assert!(ask("nmae", "csv").unwrap_err().starts_with("Field \"nmae\" is not a valid field"));
        assert!(ask("name", "xml").is_err());
    }

    #[test]
    fn processes_have_their_memory() {
        let text = processes(&machine(), &words("pid,used_memory"), &words("csv"));
        assert_eq!(text.ok().as_deref(), Some("pid, used_memory [MiB]\n7, 300 MiB\n"));
    }

    #[test]
    fn days_become_dates() {
        assert_eq!(date(0), (1970, 1, 1));
        assert_eq!(date(11_016), (2000, 2, 29));
        assert_eq!(date(20_776), (2026, 11, 19));
    }
}
