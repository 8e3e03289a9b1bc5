async fn example(session: ndcompat::Session, pair: ndcompat::Pair, to: std::net::SocketAddr) {
    let connecting = session.connect(pair, to, ndcompat::Offer::new());
    let buffer = session.buffer(64).unwrap();
    drop(pair.receive(buffer)); // before `connect`, or on the connection
    drop(connecting.await);
}

fn main() {}
