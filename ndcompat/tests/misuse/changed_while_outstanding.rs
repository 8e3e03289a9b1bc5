use ndcompat::Memory;

fn example(pair: &ndcompat::Pair, mut buffer: ndcompat::Buffer) {
    let sending = pair.send(buffer.part(..8));
    buffer.fill(0);
    let _ = sending.wait();
}

fn main() {}
