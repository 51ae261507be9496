package otlp

import (
	"net/http"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/trimtab/trimtab/collector/zipkin"
)

// spans serves Zipkin's POST /api/v2/spans: JSON, or protobuf if the content type says so.
// Accepted spans are answered with 202, as Zipkin does. The protocol has no partial success: a
// request of which no span was accepted gets 400.
func (w *web) spans(rw http.ResponseWriter, r *http.Request) {
	kind := mediaType(r)
	switch {
	case r.Method != http.MethodPost:
		rw.Header().Set("Allow", http.MethodPost)
		w.failZipkin(rw, failure{http.StatusMethodNotAllowed, codes.Unimplemented, "method", "use POST"})
		return
	case strings.Contains(kind, "thrift"):
		w.failZipkin(rw, failure{http.StatusUnsupportedMediaType, codes.InvalidArgument, "content_type", "Zipkin's Thrift is version 1, which is not read: send version 2 as JSON or protobuf"})
		return
	}
	packer := w.fromZipkin.Packer()
	defer w.fromZipkin.Recycle(packer)
	f := w.read(rw, r, func(body []byte) error {
		if isProtobuf(kind) {
			return zipkin.ScanProto(body, &w.zipkin, packer)
		}
		return zipkin.ScanJSON(body, &w.zipkin, packer)
	})
	if f.http != 0 {
		w.failZipkin(rw, f)
		return
	}
	if err := w.fromZipkin.Send(r.Context(), packer); err != nil {
		retryLater(rw, err)
		http.Error(rw, err.Error(), http.StatusServiceUnavailable)
		return
	}
	if complaint := packer.Complaint(); complaint != "" && packer.Spans() == 0 {
		http.Error(rw, complaint, http.StatusBadRequest)
		return
	}
	rw.WriteHeader(http.StatusAccepted)
}

// failZipkin refuses a request whole, in plain text.
func (w *web) failZipkin(rw http.ResponseWriter, f failure) {
	w.refusedZipkin(f.reason)
	if f.http == http.StatusServiceUnavailable {
		rw.Header().Set("Retry-After", "1")
	}
	http.Error(rw, f.message, f.http)
}
