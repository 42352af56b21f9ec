//! The one scheduler: trials of `sweep` and `fit`, scripts of `check` and ranks of `run` are jobs, and it decides
//! how many of them run at once.
//!
//! At most as many as `--jobs` says, else as many as there are cores for this process; fewer if the host's memory
//! would not be enough ([`room`] is the rule, [`memory`] what it is asked with). A [`Queue`] says which job is next
//! and takes the answers; each job has a thread that waits for its processes. Answers come in any order: a queue
//! that puts them where they belong gives the same result for every number of jobs.

mod memory;
mod room;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use anyhow::Result;

use self::room::Room;

pub(crate) use self::memory::{available, held};

/// How often memory is looked at while jobs run: peaks of a process last until its end, so little is missed.
const BEAT: Duration = Duration::from_millis(250);

/// Jobs that wait for their turn.
pub(crate) trait Queue {
    type Job: Send + Sync;
    type Answer: Send;

    /// The next job while these run; `None` if there is none, or none before one of them has ended.
    fn next(&mut self, running: &[&Self::Job]) -> Option<Self::Job>;

    /// What came of a job. After an error no other is started.
    fn ended(&mut self, job: &Self::Job, answer: Self::Answer) -> Result<()>;
}

/// A job's process, once there is one: what it and its children hold is the job's.
#[derive(Debug, Default)]
pub(crate) struct Started(AtomicU32);

impl Started {
    pub(crate) fn is(&self, pid: u32) {
        self.0.store(pid, Ordering::Relaxed);
    }

    fn pid(&self) -> Option<u32> {
        Some(self.0.load(Ordering::Relaxed)).filter(|pid| *pid != 0)
    }
}

/// A job that runs.
struct Running<J> {
    job: Arc<J>,
    started: Arc<Started>,
}

/// The scheduler of one command; it learns from each job what the next will need.
pub(crate) struct Jobs {
    room: Room,
}

impl Jobs {
    /// So many at once, or as many as there are cores.
    pub(crate) fn new(asked: Option<NonZeroUsize>) -> Jobs {
        Jobs { room: Room::new(asked.map_or_else(cores, NonZeroUsize::get)) }
    }

    /// Runs what the queue has until it has nothing more and all have ended.
    pub(crate) fn run<Q: Queue>(
        &mut self,
        queue: &mut Q,
        work: impl Fn(&Q::Job, &Started) -> Q::Answer + Sync,
    ) -> Result<()> {
        let (sender, answers) = channel();
        let mut running: BTreeMap<usize, Running<Q::Job>> = BTreeMap::new();
        let (mut number, work) = (0, &work);
        std::thread::scope(|scope| {
            let mut result = Ok(());
            loop {
                self.look(&running);
                while result.is_ok() && self.room.may_start(memory::available()) {
                    let others: Vec<&Q::Job> = running.values().map(|it| it.job.as_ref()).collect();
                    let Some(job) = queue.next(&others) else { break };
                    let (job, started) = (Arc::new(job), Arc::new(Started::default()));
                    running.insert(number, Running { job: job.clone(), started: started.clone() });
                    self.room.start(number);
                    let sender = sender.clone();
                    scope.spawn(move || {
                        let answer = catch_unwind(AssertUnwindSafe(|| work(&job, &started)));
                        // Who does not listen any more has failed as well.
                        let _ = sender.send((number, answer));
                    });
                    number += 1;
                }
                if running.is_empty() {
                    return result;
                }
                let Ok((ended, answer)) = answers.recv_timeout(BEAT) else { continue };
                self.room.end(ended);
                let Some(Running { job, .. }) = running.remove(&ended) else { continue };
                let answer = answer.unwrap_or_else(|panic| resume_unwind(panic));
                result = result.and(queue.ended(&job, answer));
            }
        })
    }

    fn look<J>(&mut self, running: &BTreeMap<usize, Running<J>>) {
        let with_pid = |(number, running): (&usize, &Running<J>)| {
            running.started.pid().map(|pid| (*number, pid))
        };
        let (numbers, pids): (Vec<usize>, Vec<u32>) = running.iter().filter_map(with_pid).unzip();
        for (number, held) in numbers.into_iter().zip(memory::held(&pids)) {
            self.room.see(number, held);
        }
    }
}

/// Cores that this process may use, by its affinity and its control group.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Numbers whose squares are wanted; odd ones come twice.
    struct Squares {
        waiting: VecDeque<(u64, bool)>,
        found: BTreeMap<u64, u64>,
        most: usize,
        fails_at: Option<u64>,
    }

    impl Queue for Squares {
        type Job = (u64, bool);
        type Answer = u64;

        fn next(&mut self, running: &[&(u64, bool)]) -> Option<(u64, bool)> {
            let next = self.waiting.pop_front();
            self.most = self.most.max(running.len() + usize::from(next.is_some()));
            next
        }

        fn ended(&mut self, (number, is_second): &(u64, bool), answer: u64) -> Result<()> {
            anyhow::ensure!(self.fails_at != Some(*number), "no square of {number}");
            match number % 2 == 1 && !is_second {
                true => self.waiting.push_back((*number, true)),
                false => drop(self.found.insert(*number, answer)),
            }
            Ok(())
        }
    }

    fn squares(at_once: usize, fails_at: Option<u64>) -> (Result<()>, Squares, usize) {
        let waiting = (0..20).map(|number| (number, false)).collect();
        let mut queue = Squares { waiting, found: BTreeMap::new(), most: 0, fails_at };
        let at_work = AtomicUsize::new(0);
        let most = AtomicUsize::new(0);
        let result =
            Jobs::new(NonZeroUsize::new(at_once)).run(&mut queue, |(number, _), started| {
                started.is(std::process::id());
                most.fetch_max(at_work.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(20 - number));
                at_work.fetch_sub(1, Ordering::SeqCst);
                number * number
            });
        (result, queue, most.load(Ordering::SeqCst))
    }

    #[test]
    fn all_are_run_whatever_their_number() {
        for at_once in [1, 3] {
            let (result, queue, most) = squares(at_once, None);
            result.unwrap();
            assert_eq!(queue.found, (0..20).map(|number| (number, number * number)).collect());
            assert!(most <= at_once && queue.most <= at_once, "{most} of {at_once}");
        }
    }

    #[test]
    fn after_an_error_nothing_is_started() {
        let (result, queue, _) = squares(1, Some(3));
        assert_eq!(result.unwrap_err().to_string(), "no square of 3");
        assert!(queue.found.keys().all(|number| *number < 3) && queue.waiting.len() > 10);
    }

    #[test]
    #[should_panic(expected = "of a job")]
    fn a_panic_of_a_job_is_ours() {
        let waiting = VecDeque::from([(1, false)]);
        let mut queue = Squares { waiting, found: BTreeMap::new(), most: 0, fails_at: None };
        let panics = |_: &(u64, bool), _: &Started| -> u64 { panic!("of a job") };
        let _ = Jobs::new(None).run(&mut queue, panics);
    }
}
