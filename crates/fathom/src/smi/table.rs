//! The table and the list, in the form of the drivers that are stood in for.

use contract::machine;

use super::machine::{Gpu, Machine};

const MIB: u64 = 1 << 20;

/// `-L`.
pub(super) fn list(machine: &Machine) -> String {
    let row = |gpu: &Gpu| format!("GPU {}: {} (UUID: {})\n", gpu.index, gpu.card.title, gpu.uuid());
    machine.gpus.iter().map(row).collect()
}

/// What `nvidia-smi` alone prints.
pub(super) fn table(machine: &Machine) -> String {
    let Machine { driver, cuda, .. } = machine;
    let head =
        format!("NVIDIA-SMI {driver:<22} Driver Version: {driver:<14} CUDA Version: {cuda:<8}");
    let mut text = frame() + &line(&head) + &columns('+', "-");
    text += &three(
        "GPU  Name                 Persistence-M",
        "Bus-Id          Disp.A",
        "Volatile Uncorr. ECC",
    );
    text +=
        &three("Fan  Temp   Perf          Pwr:Usage/Cap", "Memory-Usage", "GPU-Util  Compute M.");
    text += &(three("", "", "MIG M.") + &columns('|', "="));
    for gpu in &machine.gpus {
        text += &(rows(gpu) + &columns('+', "-"));
    }
    text + "\n" + &processes(machine)
}

fn frame() -> String {
    format!("+{}+\n", "-".repeat(89))
}

fn line(text: &str) -> String {
    format!("| {text:<87} |\n")
}

/// The rule between rows of three cells.
fn columns(end: char, fill: &str) -> String {
    let [first, second, third] = [41, 24, 22].map(|width| fill.repeat(width));
    format!("{end}{first}+{second}+{third}{end}\n")
}

fn three(first: &str, second: &str, third: &str) -> String {
    format!("| {first:<39} | {second:>22} | {third:>20} |\n")
}

fn rows(gpu: &Gpu) -> String {
    let title: String = gpu.card.title.chars().take(30).collect();
    let name = format!("{:>3}  {title:<31}Off", gpu.index);
    let watts = f64::from(machine::IDLE_MILLIWATTS) / 1000.0;
    let state = format!("N/A   {}C    P8          {watts:>5.0}W /  N/A", machine::IDLE_TEMPERATURE);
    let bus = format!("{} Off", gpu.bus());
    let memory = format!("{}MiB / {:>6}MiB", gpu.used() / MIB, gpu.card.memory_bytes / MIB);
    three(&name, &bus, "N/A") + &three(&state, &memory, "0%      Default") + &three("", "", "N/A")
}

fn processes(machine: &Machine) -> String {
    let mut text = frame() + &line("Processes:");
    text += &line(
        " GPU   GI   CI              PID   Type   Process name                        GPU Memory",
    );
    text +=
        &line("       ID   ID                                                               Usage");
    text += &format!("|{}|\n", "=".repeat(89));
    let mut is_any = false;
    for gpu in &machine.gpus {
        for process in &gpu.processes {
            is_any = true;
            // A long name loses its beginning, as there.
            let long = process.name.chars().count();
            let name: String = match long {
                0..=30 => process.name.clone(),
                _ => "...".chars().chain(process.name.chars().skip(long - 27)).collect(),
            };
            let memory = format!("{}MiB", process.bytes / MIB);
            text += &line(&format!(
                "{:>4}   N/A  N/A  {:>15}      C   {name:<30} {memory:>14}",
                gpu.index, process.pid
            ));
        }
    }
    if !is_any {
        text += &line(" No running processes found");
    }
    text + &frame()
}

#[cfg(test)]
mod tests {
    use super::super::machine::Process;
    use super::*;

    fn machine(name: &str) -> Machine {
        let card = gpus::find("rtx3090").unwrap().clone();
        let process = Process { pid: 4242, name: name.to_owned(), bytes: 300 * MIB };
        let gpu = |index| Gpu { index, card: card.clone(), processes: Vec::new() };
        let gpus = vec![gpu(0), Gpu { processes: vec![process], ..gpu(1) }];
        Machine { driver: "580.65.06", cuda: "13.0".to_owned(), gpus, count: 2 }
    }

    #[test]
    fn every_line_is_as_wide_as_the_frame() {
        for name in ["python", "/home/someone/with/a/very/long/path/bin/python3.12"] {
            let text = table(&machine(name));
            for line in text.lines().filter(|line| !line.is_empty()) {
                assert_eq!(line.chars().count(), 91, "{line}\n{text}");
            }
            assert!(
                text.contains(" 300MiB /  24") && text.contains("Driver Version: 580.65.06 "),
                "{text}"
            );
        }
    }

    /// Our own reader of such tables is a usual parser, too.
    #[test]
    fn the_table_is_read_as_that_of_a_real_card() {
        let text = table(&machine("python"));
        let found = oom::read(&text);
        assert_eq!(found.len(), 2, "{text}");
        assert_eq!(found[1].device, Some(1));
        assert_eq!(found[1].card, "NVIDIA GeForce RTX 3090");
    }

    #[test]
    fn the_list_names_each_card() {
        let text = list(&machine("python"));
        assert!(text.starts_with("GPU 0: NVIDIA GeForce RTX 3090 (UUID: GPU-6661"), "{text}");
        assert_eq!(text.lines().count(), 2);
    }
}
