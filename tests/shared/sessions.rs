//! Connections of the Rust API.

use crate::{SOON, connected, session, turn};
use ndcompat::Status;

#[test]
fn receives_end_with_the_connection_though_its_end_is_waited_for() {
    let _turn = turn();
    let session = session();
    for kind in ["none", "held", "dropped", "completed"] {
        let mut receiving = None;
        let buffer = session.buffer(8).unwrap();
        let (client, server) = connected(&session, |pair| receiving = Some(pair.receive(buffer)));
        let mut gone = (kind != "none").then(|| server.disconnected().unwrap());
        if kind == "dropped" {
            gone = None;
        }
        session.wait(client.disconnect()).unwrap();
        if kind == "completed" {
            gone.take().unwrap().wait().unwrap();
        }
        let Ok((_, result)) = receiving.unwrap().wait_for(SOON) else { panic!("{kind}: it does not end") };
        assert_eq!(result.err(), Some(Status::CANCELED), "{kind}");
    }
}
