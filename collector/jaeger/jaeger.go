package jaeger

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trimtab/trimtab/collector"
	"github.com/trimtab/trimtab/collector/otlp"
	"github.com/trimtab/trimtab/internal/metric"
)

// New returns the service of PostSpans, which sends to sink and counts in set.
func New(sink *collector.Sink, set *metric.Set) *otlp.Service {
	const name = "jaeger"
	return &otlp.Service{
		From: sink.Source(name), Scan: ScanRequest,
		Refused: func(reason string) { set.Counter("trimtab_collector_requests_rejected_total", name, reason).Inc() },
		Answer: func(p *collector.Packer) ([]byte, error) {
			if complaint := p.Complaint(); complaint != "" && p.Spans() == 0 {
				return nil, status.Error(codes.InvalidArgument, complaint)
			}
			return nil, nil
		},
	}
}

// Register adds s to the gRPC server of an otlp.Receiver.
func Register(r grpc.ServiceRegistrar, s *otlp.Service) {
	s.Register(r, "jaeger.api_v2.CollectorService", "PostSpans")
}
