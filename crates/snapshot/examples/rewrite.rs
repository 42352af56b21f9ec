//! Reads a snapshot and writes it again: `rewrite IN OUT`

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut paths = std::env::args().skip(1);
    let (Some(from), Some(to)) = (paths.next(), paths.next()) else {
        return Err("usage: rewrite IN OUT".into());
    };
    let snapshot = snapshot::read(&std::fs::read(from)?)?;
    println!("{} events, {:?}, {:?}", snapshot.event_count(), snapshot.form, snapshot.contents());
    std::fs::write(to, snapshot::write(&snapshot))?;
    Ok(())
}
