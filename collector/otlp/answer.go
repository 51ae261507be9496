package otlp

import (
	"encoding/json"
	"fmt"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/trimtab/trimtab/collector"
)

// partial says which spans of a request were rejected. A message without
// rejected spans is a warning.
type partial struct {
	rejected uint64
	message  string
}

// partialOf reads what p rejected or did not understand.
func partialOf(p *collector.Packer) partial {
	if empty, unread := p.Empty(); empty && unread != "" {
		return partial{message: fmt.Sprintf("no span was read: an OTLP request has no key %q", unread)}
	}
	return partial{rejected: p.Rejected(), message: p.Complaint()}
}

// protobuf encodes an ExportTraceServiceResponse.
func (p partial) protobuf() []byte {
	if p.message == "" {
		return nil
	}
	var inner []byte
	inner = protowire.AppendTag(inner, 1, protowire.VarintType)
	inner = protowire.AppendVarint(inner, p.rejected)
	inner = protowire.AppendTag(inner, 2, protowire.BytesType)
	inner = protowire.AppendString(inner, p.message)
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), inner)
}

// json encodes the same in OTLP's JSON.
func (p partial) json() []byte {
	if p.message == "" {
		return []byte("{}")
	}
	message, _ := json.Marshal(p.message) // a string always encodes
	return fmt.Appendf(nil, `{"partialSuccess":{"rejectedSpans":"%d","errorMessage":%s}}`, p.rejected, message)
}

// statusBody encodes a google.rpc.Status without details.
func statusBody(asJSON bool, code codes.Code, message string) []byte {
	if asJSON {
		text, _ := json.Marshal(message) // a string always encodes
		return fmt.Appendf(nil, `{"code":%d,"message":%s}`, code, text)
	}
	b := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(code))
	return protowire.AppendString(protowire.AppendTag(b, 2, protowire.BytesType), message)
}

// unavailable returns the gRPC status of a refusal: UNAVAILABLE, with RetryInfo so that senders
// retry after the pause. Other errors are UNAVAILABLE without it.
func unavailable(err error) error {
	s := status.New(codes.Unavailable, err.Error())
	r := collector.AsRefusal(err)
	if r == nil {
		return s.Err()
	}
	detailed, detailErr := s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(r.RetryAfter)})
	if detailErr != nil {
		return s.Err()
	}
	return detailed.Err()
}

// unread classifies gRPC's error on reading a request: the reason to count, and the status to
// answer with. A body that cannot be decompressed is INVALID_ARGUMENT, where gRPC has INTERNAL.
func unread(err error) (reason string, answer error) {
	switch s := status.Convert(err); s.Code() {
	case codes.ResourceExhausted:
		return "too_large", err
	case codes.DeadlineExceeded, codes.Canceled:
		return "cut_off", err
	case codes.Unimplemented:
		return "content_encoding", err
	default:
		return "malformed", status.Error(codes.InvalidArgument, s.Message())
	}
}
