//! Translation of `ibv_wc_status` to ND status.

use crate::status::Status;
use crate::types::RequestType;
use crate::verbs::bindings::*;

/// The ND status for the completion of a request of type `kind`.
///
/// As Mellanox's Windows provider translates them. Soft-RoCE reports a wrong local token and a receive that is too short by
/// the same error: the type of the request tells which it is. Soft-iWARP reports a general error for a message or read that
/// the end of the connection has cut short: in ND, that is cancelled.
pub(crate) fn status(status: ibv_wc_status, kind: RequestType) -> Status {
    match status {
        IBV_WC_SUCCESS => Status::SUCCESS,
        IBV_WC_WR_FLUSH_ERR => Status::CANCELED,
        IBV_WC_GENERAL_ERR if matches!(kind, RequestType::Receive | RequestType::Read) => Status::CANCELED,
        IBV_WC_LOC_LEN_ERR => Status::DATA_OVERRUN,
        IBV_WC_LOC_QP_OP_ERR if kind == RequestType::Receive => Status::DATA_OVERRUN,
        IBV_WC_LOC_QP_OP_ERR
        | IBV_WC_LOC_PROT_ERR
        | IBV_WC_LOC_ACCESS_ERR
        | IBV_WC_REM_ACCESS_ERR
        | IBV_WC_MW_BIND_ERR => Status::ACCESS_VIOLATION,
        IBV_WC_RETRY_EXC_ERR | IBV_WC_RNR_RETRY_EXC_ERR | IBV_WC_RESP_TIMEOUT_ERR => Status::IO_TIMEOUT,
        IBV_WC_REM_OP_ERR | IBV_WC_REM_INV_REQ_ERR | IBV_WC_BAD_RESP_ERR => Status::DATA_ERROR,
        IBV_WC_REM_ABORT_ERR => Status::REMOTE_ERROR,
        IBV_WC_INV_EECN_ERR | IBV_WC_INV_EEC_STATE_ERR => Status::INVALID_DEVICE_REQUEST,
        _ => Status::INTERNAL_ERROR,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_of_a_device_has_its_status() {
        let errors = [
            (IBV_WC_LOC_LEN_ERR, Status::DATA_OVERRUN),
            (IBV_WC_LOC_QP_OP_ERR, Status::ACCESS_VIOLATION),
            (IBV_WC_LOC_EEC_OP_ERR, Status::INTERNAL_ERROR),
            (IBV_WC_LOC_PROT_ERR, Status::ACCESS_VIOLATION),
            (IBV_WC_WR_FLUSH_ERR, Status::CANCELED),
            (IBV_WC_MW_BIND_ERR, Status::ACCESS_VIOLATION),
            (IBV_WC_BAD_RESP_ERR, Status::DATA_ERROR),
            (IBV_WC_LOC_ACCESS_ERR, Status::ACCESS_VIOLATION),
            (IBV_WC_REM_INV_REQ_ERR, Status::DATA_ERROR),
            (IBV_WC_REM_ACCESS_ERR, Status::ACCESS_VIOLATION),
            (IBV_WC_REM_OP_ERR, Status::DATA_ERROR),
            (IBV_WC_RETRY_EXC_ERR, Status::IO_TIMEOUT),
            (IBV_WC_RNR_RETRY_EXC_ERR, Status::IO_TIMEOUT),
            (IBV_WC_REM_ABORT_ERR, Status::REMOTE_ERROR),
            (IBV_WC_INV_EECN_ERR, Status::INVALID_DEVICE_REQUEST),
            (IBV_WC_INV_EEC_STATE_ERR, Status::INVALID_DEVICE_REQUEST),
            (IBV_WC_FATAL_ERR, Status::INTERNAL_ERROR),
            (IBV_WC_RESP_TIMEOUT_ERR, Status::IO_TIMEOUT),
            (IBV_WC_GENERAL_ERR, Status::INTERNAL_ERROR),
        ];
        for (error, expected) in errors {
            assert_eq!(status(error, RequestType::Write), expected, "{error}");
        }
        // What the end of a connection has cut short, and a receive that is too short on soft-RoCE.
        assert_eq!(status(IBV_WC_GENERAL_ERR, RequestType::Read), Status::CANCELED);
        assert_eq!(status(IBV_WC_GENERAL_ERR, RequestType::Receive), Status::CANCELED);
        assert_eq!(status(IBV_WC_LOC_QP_OP_ERR, RequestType::Receive), Status::DATA_OVERRUN);
        assert_eq!(status(IBV_WC_SUCCESS, RequestType::Receive), Status::SUCCESS);
    }
}
