//! Tables of `nvidia-smi`, of drivers old and new, its CSV and its long form.

use crate::account::{Account, Process};
use crate::amount::Amount;
use crate::families::NVIDIA_SMI;

const MIB: u64 = 1 << 20;

/// Every card, in order.
pub(crate) fn read(plain: &str) -> Vec<Account> {
    let mut reader = Reader::default();
    for (index, line) in plain.split('\n').enumerate() {
        reader.line(index + 1, line);
    }
    reader.accounts
}

#[derive(Default)]
struct Reader {
    accounts: Vec<Account>,
    /// Number and name of the row above.
    name: Option<(u32, String)>,
    /// Cards before the table that is read now.
    earlier: usize,
    /// Columns of the CSV that is read now.
    columns: Vec<Column>,
    /// The row above is a MIG device: below its memory stands that of its BAR1.
    is_below_mig: bool,
    /// `nvidia-smi -q`: inside `FB Memory Usage`.
    in_long_form: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Column {
    Index,
    Name,
    Total,
    Used,
    Free,
    Other,
}

impl Reader {
    fn line(&mut self, number: usize, line: &str) {
        if line.contains("NVIDIA-SMI") {
            self.earlier = self.accounts.len();
        }
        if line.contains("memory.used") || line.contains("memory.total") {
            self.columns = line.split(',').map(column).collect();
            self.earlier = self.accounts.len();
        } else if !self.columns.is_empty() {
            self.csv(number, line);
        } else if line.contains('|') {
            self.row(number, line);
        } else {
            self.long_form(number, line);
        }
    }

    /// A row of a table: a card's name, its memory, or a process.
    fn row(&mut self, number: usize, line: &str) {
        let cells: Vec<&str> = line.split('|').map(str::trim).take(16).collect();
        if let Some((used, total)) = cells.iter().find_map(|cell| used_of_total(cell)) {
            if std::mem::take(&mut self.is_below_mig) {
                return;
            }
            let mut account = Account::new(&NVIDIA_SMI, number);
            let mig = cells.get(1).and_then(|cell| mig(cell));
            self.is_below_mig = mig.is_some();
            let (device, card) = mig.or_else(|| self.name.take()).unzip();
            account.device = device.or_else(|| bracketed(cells.first()?));
            account.card = card.unwrap_or_default();
            account.figures.used = Some(used);
            account.figures.capacity = Some(total);
            account.figures.free = total.minus(used);
            self.accounts.push(account);
            return;
        }
        let words: Vec<&str> = cells.iter().copied().flat_map(str::split_whitespace).collect();
        match process(&words) {
            Some((device, process)) => self.process(device, process),
            None => {
                self.name = name(cells.get(1).copied().unwrap_or_default()).or(self.name.take())
            }
        }
    }

    fn process(&mut self, device: u32, process: Process) {
        let mut cards = self.accounts.iter_mut().skip(self.earlier);
        if let Some(account) = cards.find(|account| account.device == Some(device)) {
            account.processes.push(process);
        }
    }

    fn csv(&mut self, number: usize, line: &str) {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        if cells.len() != self.columns.len() || line.trim().is_empty() {
            self.columns.clear();
            return;
        }
        let mut account = Account::new(&NVIDIA_SMI, number);
        account.device = Some((self.accounts.len() - self.earlier) as u32);
        for (column, cell) in self.columns.iter().zip(&cells) {
            let amount = || mebibytes(cell);
            match column {
                Column::Index => account.device = cell.parse().ok().or(account.device),
                Column::Name => account.card = (*cell).to_owned(),
                Column::Total => account.figures.capacity = amount(),
                Column::Used => account.figures.used = amount(),
                Column::Free => account.figures.free = amount(),
                Column::Other => {}
            }
        }
        if account.figures.used.or(account.figures.capacity).is_some() {
            let figures = &mut account.figures;
            let left = figures.capacity.zip(figures.used).and_then(|(all, used)| all.minus(used));
            figures.free = figures.free.or(left);
            self.accounts.push(account);
        } else {
            self.columns.clear();
        }
    }

    /// `FB Memory Usage`, then `Total : 1995 MiB` and so on.
    fn long_form(&mut self, number: usize, line: &str) {
        let line = line.trim();
        if line == "FB Memory Usage" {
            self.in_long_form = true;
            self.accounts.push(Account::new(&NVIDIA_SMI, number));
            return;
        }
        let pair = line.split_once(':').filter(|_| self.in_long_form);
        let amount = pair.and_then(|(_, value)| mebibytes(value.trim()));
        let (Some((key, _)), Some(amount), Some(account)) =
            (pair, amount, self.accounts.last_mut())
        else {
            self.in_long_form = false;
            return;
        };
        match key.trim() {
            "Total" => account.figures.capacity = Some(amount),
            "Used" => account.figures.used = Some(amount),
            "Free" => account.figures.free = Some(amount),
            _ => {}
        }
    }
}

fn column(title: &str) -> Column {
    match title.split_whitespace().next().unwrap_or_default() {
        "index" => Column::Index,
        "name" | "gpu_name" => Column::Name,
        "memory.total" => Column::Total,
        "memory.used" => Column::Used,
        "memory.free" => Column::Free,
        _ => Column::Other,
    }
}

/// `1234 MiB`, or `1234` where the title has the unit. Whether it was rounded or cut is not known.
fn mebibytes(cell: &str) -> Option<Amount> {
    let digits = cell.bytes().take_while(u8::is_ascii_digit).count();
    let unit = cell[digits..].trim_start();
    if !(unit.is_empty() || unit.starts_with("MiB") || unit.starts_with("MB")) {
        return None;
    }
    let bytes = cell[..digits].parse::<u64>().ok().filter(|count| *count < 1 << 40)? * MIB;
    let open = if bytes == 0 { 0 } else { MIB };
    Some(Amount { low: bytes - open, high: bytes + open })
}

/// `451MiB /  6144MiB`, and `103 / 16384 MB` as gpustat writes it.
fn used_of_total(cell: &str) -> Option<(Amount, Amount)> {
    let (used, total) = cell.split_once('/')?;
    let (used, total) = (used.trim(), total.trim());
    if !(total.ends_with("MiB") || total.ends_with("MB")) || used.is_empty() {
        return None;
    }
    Some((mebibytes(used)?, mebibytes(total)?))
}

/// `[0] Tesla P100-PCIE-16GB`
fn bracketed(cell: &str) -> Option<u32> {
    cell.strip_prefix('[')?.split(']').next()?.parse().ok()
}

/// `0  NVIDIA GeForce RTX 4090        Off`: up to the first wide gap.
fn name(cell: &str) -> Option<(u32, String)> {
    let (number, rest) = cell.split_once(char::is_whitespace)?;
    let name = rest.trim_start().split("  ").next().unwrap_or_default();
    Some((number.parse().ok()?, name.trim().to_owned()))
}

/// `1    3   0   0`: a card, and the instances and number of a MIG device on it.
fn mig(cell: &str) -> Option<(u32, String)> {
    let numbers: Option<Vec<u32>> = cell.split_whitespace().map(|word| word.parse().ok()).collect();
    match numbers?.as_slice() {
        [card, instance, compute, _] => Some((*card, format!("MIG {instance}/{compute}"))),
        _ => None,
    }
}

/// `0   N/A  N/A      1234      C   python      22616MiB`; older ones have no `N/A`.
fn process(words: &[&str]) -> Option<(u32, Process)> {
    let kind = words.iter().position(|word| matches!(*word, "C" | "G" | "C+G" | "M+C"))?;
    let (device, pid) = (words.first()?.parse().ok()?, words.get(kind.checked_sub(1)?)?);
    let memory = mebibytes(words.last()?.strip_suffix("MiB")?)?;
    let name = words.get(kind + 1..words.len() - 1)?.join(" ");
    (1 < kind).then_some(())?;
    Some((device, Process { pid: pid.parse().ok()?, name, memory }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Device, used MiB, total MiB, and each process with its MiB.
    fn told(text: &str) -> Vec<String> {
        let mib = |amount: Option<Amount>| amount.map_or(0, |amount| amount.middle() >> 20);
        let row = |account: &Account| {
            let device = account.device.map_or("?".to_owned(), |device| device.to_string());
            let (used, total) = (mib(account.figures.used), mib(account.figures.capacity));
            let processes = account.processes.iter();
            let processes =
                processes.map(|p| format!(" {} {} {}", p.pid, p.name, mib(Some(p.memory))));
            format!("{device} {} {used}/{total}{}", account.card, processes.collect::<String>())
        };
        read(text).iter().map(row).collect()
    }

    #[test]
    fn processes_go_to_their_card() {
        let new = "\
| NVIDIA-SMI 575.57              Driver Version: 575.57         CUDA Version: 12.9     |
|   0  NVIDIA A10G                    On  |   00000000:00:1E.0 Off |                    0 |
|  0%   31C    P0             60W /  300W |   22624MiB /  23028MiB |     99%      Default |
|   1  NVIDIA A10G                    On  |   00000000:00:1F.0 Off |                    0 |
|  0%   31C    P0             60W /  300W |     100MiB /  23028MiB |      0%      Default |
| Processes:                                                                              |
|    0   N/A  N/A            1797      G   Xorg                                      6MiB |
|    0   N/A  N/A         2860978      C   .venv/bin/python train.py             22616MiB |
|    1   N/A  N/A            1228    C+G   C:\\Windows\\explorer.exe                   N/A   |
";
        assert_eq!(
            told(new),
            [
                "0 NVIDIA A10G 22624/23028 1797 Xorg 6 2860978 .venv/bin/python train.py 22616",
                "1 NVIDIA A10G 100/23028"
            ]
        );
        let old = "\
|   0  GeForce GTX 1070    On   | 00000000:08:00.0  On |                  N/A |
| 50%   44C    P2    99W / 100W |   2896MiB /  8119MiB |    100%      Default |
|    0      1833      C   ./train                                   2855MiB |
";
        assert_eq!(told(old), ["0 GeForce GTX 1070 2896/8119 1833 ./train 2855"]);
    }

    #[test]
    fn csv_is_read_by_its_titles() {
        let text = "index, name, memory.used [MiB], memory.total [MiB]\n0, NVIDIA A100, 1234 MiB, 81920 MiB\n\
                    1, NVIDIA A100, [N/A], 81920 MiB\nbye\n";
        assert_eq!(told(text), ["0 NVIDIA A100 1234/81920", "1 NVIDIA A100 0/81920"]);
        assert_eq!(told("memory.total, memory.used\n24564, 507\n"), ["0  507/24564"]);
        assert_eq!(told("memory.used [MiB]\n[N/A]\n12 MiB\n"), [] as [&str; 0]);
    }
}
