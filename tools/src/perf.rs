//! `nd perf`: latency and bandwidth.
//!
//! Each connection is an async task; the way to wait (polling, an event, the descriptor, a port) is chosen by whoever runs the
//! tasks.

use crate::cli::{self, Operation, Wait};
use crate::failure::conclude;
use crate::interrupt::{self, SLICE};
use crate::measure::Times;
use crate::messages::silent;
use crate::peer::{Ends, connect, session};
use crate::protocol::{CREDIT, Purpose, RECEIVES, Request, seconds};
use anyhow::{Context, Result};
use ndcompat::types::RegionFlags;
use ndcompat::{Connection, Port, RemoteMemory, Session, SharedMemory, Status, Transfer};
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context as Task, Poll, Wake};
use std::time::{Duration, Instant};

/// State shared by the connections of one measurement.
struct Run<'a> {
    options: &'a cli::Perf,
    session: Session,
    /// For `--wait port`: the completion port of the session.
    port: RefCell<Option<Port>>,
    size: u32,
    end: Cell<Instant>,
    /// Completed requests, and their times.
    done: Cell<u64>,
    times: RefCell<Times>,
}

/// An established connection, with its buffers.
struct Ready {
    connection: Connection,
    remote: RemoteMemory,
    /// The memory of the requests. All use the same bytes, so each holds a clone of shared memory.
    memory: SharedMemory,
    /// Outstanding receives, for echoes or credits.
    receiving: VecDeque<Transfer<SharedMemory>>,
    /// How many messages may be sent before the peer grants more.
    credits: u64,
}

pub fn run(options: &cli::Perf, json: bool) -> Result<bool> {
    if let Some(file) = &options.svg {
        // A file that cannot be written is reported before the measurement. What is in it stays until there is something new.
        let opened = std::fs::OpenOptions::new().write(true).create(true).truncate(false).open(file);
        opened.with_context(|| format!("writing {}", file.display()))?;
    }
    let ends = options.peer.find()?;
    let mut results = Vec::new();
    let outcome = measure_all(options, ends, |size, times, requests, elapsed| {
        if !json {
            print(options, results.is_empty(), size, times, requests, elapsed);
        }
        results.push(as_json(options, size, times, requests, elapsed));
    });
    if results.is_empty() && outcome.is_err() {
        return outcome.map(|()| false);
    }
    let measured = json.then(|| {
        let local = ends.from.or_else(|| ndcompat::Provider::resolve(ends.to).ok());
        json!({
            "from": local, "to": ends.to, "operation": options.operation, "wait": options.wait,
            "measure": if options.bandwidth { "bandwidth" } else { "latency" },
            "queue_pairs": options.queue_pairs, "depth": options.depth, "results": results, "interrupted": interrupt::came(),
        })
    });
    Ok(conclude(measured, outcome)? && !results.is_empty())
}

/// Measures with each size, and draws the last. `each` is called with what was measured, before anything else can fail.
fn measure_all(
    options: &cli::Perf,
    ends: Ends,
    mut each: impl FnMut(u32, &Times, u64, Duration),
) -> Result<()> {
    let mut picture = None;
    for &size in &options.size {
        let (times, requests, elapsed) =
            measure(options, ends, size).with_context(|| format!("with {size} bytes"))?;
        // Interrupted before anything was measured.
        if requests == 0 {
            break;
        }
        each(size, &times, requests, elapsed);
        let title = format!("{:?} of {size} bytes, {:?}", options.operation, options.wait).to_lowercase();
        picture = options.svg.as_ref().map(|file| (file, times.svg(&title)));
        if interrupt::came() {
            break;
        }
    }
    if let Some((file, picture)) = picture {
        std::fs::write(file, picture).with_context(|| format!("writing {}", file.display()))?;
    }
    Ok(())
}

fn as_json(options: &cli::Perf, size: u32, times: &Times, requests: u64, elapsed: Duration) -> Value {
    let rate = requests as f64 / elapsed.as_secs_f64();
    let kind = if options.operation == Operation::Send && !options.bandwidth {
        "half_round_trip_us"
    } else {
        "completion_us"
    };
    json!({
        "size": size, "requests": requests, "seconds": elapsed.as_secs_f64(), "requests_per_second": rate,
        "bytes_per_second": rate * f64::from(size), kind: times.json(),
    })
}

fn print(options: &cli::Perf, first: bool, size: u32, times: &Times, requests: u64, elapsed: Duration) {
    let rate = requests as f64 / elapsed.as_secs_f64();
    let percentiles =
        [50.0, 90.0, 99.0, 99.9, 100.0].map(|percent| format!(" {:>9.2}", times.at(percent))).join("");
    if first {
        let what = match (options.bandwidth, options.operation) {
            (true, _) => "bandwidth; times are until completion",
            (false, Operation::Send) => "latency; times are half a round trip",
            (false, _) => "latency; times are until completion",
        };
        out!("{:?}, {what}, µs", options.operation);
        out!(
            "{:>9}{:>12}{:>12}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}",
            "bytes",
            "requests",
            "per second",
            "MB/s",
            "p50",
            "p90",
            "p99",
            "p99.9",
            "max"
        );
    }
    out!("{size:>9} {requests:>11} {rate:>11.0} {:>9.1}{percentiles}", rate * f64::from(size) / 1e6);
    if options.size.len() == 1 && !options.bandwidth {
        out!("{}", times.text().trim_end());
    }
}

fn measure(options: &cli::Perf, ends: Ends, size: u32) -> Result<(Times, u64, Duration)> {
    let depth = if options.bandwidth { options.depth } else { 1 };
    let session = session(ends, (options.queue_pairs * (depth + RECEIVES)).max(16))?;
    let port = match options.wait {
        Wait::Port => {
            let port = Port::new().context("making a completion port")?;
            port.add(&session).context("binding the session to the completion port")?;
            Some(port)
        }
        _ => None,
    };
    let port = RefCell::new(port);
    let (end, times) = (Cell::new(Instant::now()), RefCell::new(Times::new()));
    let run = Run { options, session, port, size, end, done: Cell::new(0), times };
    let ready: Vec<_> = (0..options.queue_pairs)
        .map(|number| run.connect(ends, depth).with_context(|| format!("connection {number}")))
        .collect::<Result<_>>()?;
    interrupt::catch();
    let begin = Instant::now();
    run.end.set(begin + options.duration);
    let tasks = ready.into_iter().map(|ready| {
        Box::pin(run.work(ready, depth)) as Pin<Box<dyn Future<Output = Result<Connection>> + '_>>
    });
    let outcomes = run.wait(all(tasks.collect(), || run.show(begin)));
    let elapsed = begin.elapsed();
    run.wipe();
    for outcome in outcomes?.into_iter().flatten() {
        let end = run.session.wait_for(options.peer.timeout, outcome?.disconnect());
        end.unwrap_or(Err(Status::IO_TIMEOUT)).context("disconnecting")?;
    }
    Ok((run.times.into_inner(), run.done.get(), elapsed))
}

/// Runs all tasks to their end. `each` is called whenever a task has run.
fn all<'a, T>(
    tasks: Vec<Pin<Box<dyn Future<Output = T> + 'a>>>,
    each: impl Fn() + 'a,
) -> impl Future<Output = Vec<T>> + 'a
where
    T: 'a,
{
    let mut tasks: Vec<_> = tasks.into_iter().map(|task| (Some(task), None)).collect();
    poll_fn(move |context| {
        each();
        let mut left = false;
        for (task, outcome) in &mut tasks {
            if let Some(running) = task {
                match running.as_mut().poll(context) {
                    Poll::Ready(done) => (*task, *outcome) = (None, Some(done)),
                    Poll::Pending => left = true,
                }
            }
        }
        if left {
            return Poll::Pending;
        }
        Poll::Ready(tasks.iter_mut().filter_map(|(_, outcome)| outcome.take()).collect())
    })
}

impl Run<'_> {
    fn connect(&self, ends: Ends, depth: u32) -> Result<Ready> {
        let purpose = match (self.options.operation, self.options.bandwidth) {
            (Operation::Send, false) => Purpose::Echo,
            (Operation::Send, true) => Purpose::Sink,
            _ => Purpose::Memory,
        };
        let pair = self.session.queue_pair().receives(4).requests(depth.max(2)).build()?;
        let length = if purpose == Purpose::Sink { CREDIT } else { self.size as usize };
        let receiving = (0..if purpose == Purpose::Memory { 0 } else { 4 })
            .map(|_| Ok(pair.receive(self.session.shared_memory(length, RegionFlags::empty())?)))
            .collect::<Result<_>>()?;
        let polls = self.options.wait == Wait::Poll;
        let depth = if purpose == Purpose::Memory { 1 } else { depth };
        // Of writes and reads the server sees nothing.
        let silence = if purpose == Purpose::Memory { seconds(self.options.duration) } else { 0 };
        let request = Request { purpose, polls, silence, size: self.size, depth };
        let (connection, answer) = connect(&self.session, pair, ends, &request, self.options.peer.timeout)?;
        let credits = if purpose == Purpose::Sink { request.receives().into() } else { u64::MAX };
        let memory = self.session.shared_memory(self.size as usize, RegionFlags::RDMA_READ_SINK)?;
        Ok(Ready { connection, remote: answer.memory, memory, receiving, credits })
    }

    /// Keeps `depth` requests outstanding until the time is over, or a SIGINT.
    async fn work(&self, ready: Ready, depth: u32) -> Result<Connection> {
        let Ready { connection, remote, memory, mut receiving, mut credits } = ready;
        let mut requests = 0u64;
        let echoed = self.options.operation == Operation::Send && !self.options.bandwidth;
        let mut outstanding: VecDeque<(Instant, Transfer<SharedMemory>)> = VecDeque::new();
        loop {
            // At least one request is measured, however short the time.
            let over = requests > 0 && (Instant::now() >= self.end.get() || interrupt::came());
            while !over && credits > 0 && outstanding.len() < depth as usize {
                let begin = Instant::now();
                let transfer = match self.options.operation {
                    Operation::Send => connection.send(memory.clone()),
                    Operation::Write => connection.write(memory.clone(), remote),
                    Operation::Read => connection.read(memory.clone(), remote),
                };
                credits -= 1;
                outstanding.push_back((begin, transfer));
            }
            let Some((begin, transfer)) = outstanding.pop_front() else {
                if over {
                    return Ok(connection);
                }
                // All credits are used up: wait for the peer to grant more.
                let next = receiving.pop_front().context("no receive is outstanding")?;
                let (credit, received) = next.await;
                received.context("waiting for the peer to keep up")?;
                credits += self.credit(&credit);
                receiving.push_back(connection.receive(credit));
                continue;
            };
            transfer.await.1.with_context(|| format!("request {}", requests + 1))?;
            let mut time = begin.elapsed();
            if echoed {
                let next = receiving.pop_front().context("no receive is outstanding")?;
                let (answer, received) = next.await;
                received.context("waiting for the answer")?;
                time = begin.elapsed() / 2;
                receiving.push_back(connection.receive(answer));
            } else {
                while receiving.front().is_some_and(Transfer::is_done) {
                    let Some(next) = receiving.pop_front() else { break };
                    let (credit, received) = next.await;
                    received.context("taking a credit")?;
                    credits += self.credit(&credit);
                    receiving.push_back(connection.receive(credit));
                }
            }
            requests += 1;
            self.times.borrow_mut().add(time);
            self.done.set(self.done.get() + 1);
        }
    }

    fn credit(&self, memory: &SharedMemory) -> u64 {
        let mut number = [0; CREDIT];
        memory.load(0, &mut number);
        u32::from_be_bytes(number).into()
    }

    /// Waits for the future, as long as requests complete. After a SIGINT, which it ends by itself, it has a moment to do so; its
    /// peer may be gone.
    fn wait<F: Future>(&self, future: F) -> Result<Option<F::Output>> {
        let mut future = pin!(future);
        let limit = self.options.peer.timeout;
        // Counted by what was waited: while this process is stopped, the peer is not silent.
        let (mut done, mut idle) = (self.done.get(), Duration::ZERO);
        loop {
            let future = future.as_mut();
            let output = match self.options.wait {
                Wait::Poll => self.session.spin_for(SLICE, future),
                Wait::Event => self.session.wait_for(SLICE, future),
                Wait::Descriptor => by_descriptor(&self.session, SLICE, future),
                Wait::Port => self.port.borrow_mut().as_mut().expect("made for this").wait_for(SLICE, future),
            };
            if output.is_some() || interrupt::came() {
                return Ok(output);
            }
            idle = if self.done.get() == done { idle + SLICE } else { Duration::ZERO };
            done = self.done.get();
            if idle >= limit {
                return Err(silent(limit).context(format!("waiting for request {}", done + 1)));
            }
        }
    }

    fn is_shown(&self) -> bool {
        !self.options.quiet && std::io::stderr().is_terminal()
    }

    /// Shows the progress on a terminal, ten times a second.
    fn show(&self, begin: Instant) {
        thread_local!(static LAST: Cell<Option<Instant>> = const { Cell::new(None) });
        let now = Instant::now();
        if LAST.get().is_none_or(|last| now - last > Duration::from_millis(100)) && self.is_shown() {
            LAST.set(Some(now));
            let (elapsed, done) = (begin.elapsed().as_secs_f64(), self.done.get());
            eprint!("\r{elapsed:.1} s, {done} requests, {:.0} per second ", done as f64 / elapsed.max(0.001));
            let _ = std::io::stderr().flush();
        }
    }

    fn wipe(&self) {
        if self.is_shown() {
            eprint!("\r\x1b[K");
        }
    }
}

/// Drives a future from a poll(2) loop on the session's descriptor, as an async executor does, for no longer than `limit`.
fn by_descriptor<F: Future>(session: &Session, limit: Duration, future: F) -> Option<F::Output> {
    #[derive(Default)]
    struct Asked(AtomicBool);
    impl Wake for Asked {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Release);
        }
    }
    let end = Instant::now() + limit;
    let asked = Arc::new(Asked(AtomicBool::new(true)));
    let (waker, progress) = (asked.clone().into(), session.progress());
    let (mut context, mut future) = (Task::from_waker(&waker), std::pin::pin!(future));
    loop {
        if asked.0.swap(false, Ordering::Acquire)
            && let Poll::Ready(output) = future.as_mut().poll(&mut context)
        {
            return Some(output);
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        let millis = if asked.0.load(Ordering::Acquire) { 0 } else { left.as_millis() as i32 + 1 };
        let fd = std::os::fd::AsRawFd::as_raw_fd(&progress.as_fd());
        let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry, a local.
        unsafe { libc::poll(&mut poll, 1, millis) };
        progress.turn();
    }
}
