//! Measured times as percentiles, as a histogram in text, and as an SVG image.

use hdrhistogram::Histogram;
use serde_json::{Value, json};
use std::fmt::Write;
use std::time::Duration;

/// Times of requests, in nanoseconds.
pub struct Times(Histogram<u64>);

/// The most rows of a histogram in the terminal.
const ROWS: usize = 16;

impl Times {
    pub fn new() -> Times {
        Times(Histogram::new_with_bounds(1, 3_600_000_000_000, 3).expect("bounds that make sense"))
    }

    pub fn add(&mut self, time: Duration) {
        self.0.saturating_record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1));
    }

    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The percentile in microseconds.
    pub fn at(&self, percent: f64) -> f64 {
        self.0.value_at_quantile(percent / 100.0) as f64 / 1000.0
    }

    pub fn json(&self) -> Value {
        json!({
            "count": self.count(), "min": self.at(0.0), "mean": self.0.mean() / 1000.0, "p50": self.at(50.0),
            "p90": self.at(90.0), "p99": self.at(99.0), "p99.9": self.at(99.9), "max": self.at(100.0),
        })
    }

    /// The buckets, fastest first, each with its upper end in microseconds and its count: one a row, evenly spaced on a
    /// logarithmic scale, with the slowest 0.1 % in the last.
    fn buckets(&self) -> Vec<(f64, u64)> {
        let (low, high) = (self.0.min().max(1) as f64, self.0.value_at_quantile(0.999).max(2) as f64);
        let step = (high / low).powf(1.0 / ROWS as f64).max(1.02);
        let mut buckets: Vec<(f64, u64)> = Vec::new();
        let mut end = low * step;
        for recorded in self.0.iter_recorded() {
            let value = recorded.value_iterated_to() as f64;
            while buckets.len() < ROWS && (buckets.is_empty() || value > end) {
                if !buckets.is_empty() {
                    end *= step;
                }
                buckets.push((end / 1000.0, 0));
            }
            buckets.last_mut().expect("one at least").1 += recorded.count_since_last_iteration();
        }
        buckets
    }

    /// The distribution as bars of text.
    pub fn text(&self) -> String {
        let buckets = self.buckets();
        let most = buckets.iter().map(|(_, count)| *count).max().unwrap_or(1).max(1);
        let mut text = String::new();
        for (end, count) in buckets {
            let bar = "█".repeat((count * 50 / most) as usize);
            writeln!(text, "{end:>12.2} µs │{bar:<50} {count}").expect("a string takes all");
        }
        text
    }

    /// The distribution as an SVG image.
    pub fn svg(&self, title: &str) -> String {
        let buckets = self.buckets();
        let most = buckets.iter().map(|(_, count)| *count).max().unwrap_or(1).max(1) as f64;
        let mut text = String::from(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 720 400\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"720\" height=\"400\" fill=\"white\"/>\n",
        );
        let title = title.replace('&', "&amp;").replace('<', "&lt;");
        writeln!(text, "<text x=\"20\" y=\"24\" font-size=\"15\">{title}</text>")
            .expect("a string takes all");
        let figures = format!(
            "p50 {:.2} µs, p99 {:.2} µs, p99.9 {:.2} µs",
            self.at(50.0),
            self.at(99.0),
            self.at(99.9)
        );
        writeln!(text, "<text x=\"20\" y=\"44\" fill=\"#555\">{figures}</text>").expect("a string takes all");
        let width = 680.0 / buckets.len().max(1) as f64;
        for (at, (end, count)) in buckets.iter().enumerate() {
            let (x, height) = (20.0 + at as f64 * width, *count as f64 / most * 290.0);
            writeln!(
                text,
                "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\" fill=\"#3572b0\"><title>{count}</title></rect>",
                355.0 - height,
                width - 2.0,
            )
            .expect("a string takes all");
            let label = x + width;
            writeln!(
                text,
                "<text x=\"{label:.1}\" y=\"372\" text-anchor=\"end\" font-size=\"9\">{end:.1}</text>"
            )
            .expect("a string takes all");
        }
        text.push_str("<text x=\"700\" y=\"390\" text-anchor=\"end\">µs, up to</text>\n</svg>\n");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_have_every_request() {
        let mut times = Times::new();
        for micros in [1, 2, 2, 3, 3, 3, 10, 100, 5000] {
            times.add(Duration::from_micros(micros));
        }
        assert_eq!(times.buckets().iter().map(|(_, count)| count).sum::<u64>(), 9);
        assert!(times.buckets().len() <= ROWS);
        assert_eq!(times.text().lines().count(), times.buckets().len());
        assert!(times.svg("a < b").contains("a &lt; b"));
        assert!((times.at(50.0) - 3.0).abs() < 0.1, "{}", times.at(50.0));
    }

    #[test]
    fn equal_times_are_one_bucket() {
        let mut times = Times::new();
        (0..5).for_each(|_| times.add(Duration::from_micros(7)));
        assert_eq!(times.buckets().iter().filter(|(_, count)| *count > 0).count(), 1);
        assert!(Times::new().text().lines().count() <= 1);
    }
}
