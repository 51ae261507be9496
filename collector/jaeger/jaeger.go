package jaeger

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trimtab/trimtab/collector"
	"github.com/trimtab/trimtab/collector/otlp"
	"github.com/trimtab/trimtab/internal/metric"
)

// Service serves PostSpans calls.
type Service struct {
	from  *collector.Source
	cache collector.ResourceCache
	// refused counts a request that was refused whole, by reason.
	refused func(reason string)
}

// New returns a service that sends to sink and counts in set.
func New(sink *collector.Sink, set *metric.Set) *Service {
	const name = "jaeger"
	return &Service{from: sink.Source(name), refused: func(reason string) {
		set.Counter("trimtab_collector_requests_rejected_total", name, reason).Inc()
	}}
}

// Counts returns the totals of the service.
func (s *Service) Counts() collector.Counts { return s.from.Counts() }

// Register adds s to the gRPC server of an otlp.Receiver, whose codec it needs.
func Register(r grpc.ServiceRegistrar, s *Service) {
	r.RegisterService(&grpc.ServiceDesc{
		ServiceName: "jaeger.api_v2.CollectorService",
		HandlerType: (*any)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: "PostSpans", Handler: postSpans}},
	}, s)
}

// call is a request while it is served; see [otlp.Request].
type call struct {
	cache  *collector.ResourceCache
	packer *collector.Packer
	err    error
}

// Scan packs the spans.
func (c *call) Scan(body []byte) { c.err = ScanRequest(body, c.cache, c.packer) }

func postSpans(srv any, ctx context.Context, read func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
	s := srv.(*Service)
	packer := s.from.Packer()
	defer s.from.Recycle(packer)
	c := call{cache: &s.cache, packer: packer}
	if err := read(&c); err != nil {
		reason, err := otlp.Unread(err)
		s.refused(reason)
		return nil, err
	}
	handle := func(ctx context.Context, _ any) (any, error) {
		if c.err != nil {
			s.refused("malformed")
			return nil, status.Error(codes.InvalidArgument, c.err.Error())
		}
		if err := s.from.Send(ctx, packer); err != nil {
			return nil, otlp.Unavailable(err)
		}
		if complaint := packer.Complaint(); complaint != "" && packer.Spans() == 0 {
			return nil, status.Error(codes.InvalidArgument, complaint)
		}
		return otlp.Answer(nil), nil
	}
	if intercept == nil {
		return handle(ctx, &c)
	}
	return intercept(ctx, &c, &grpc.UnaryServerInfo{Server: srv, FullMethod: "/jaeger.api_v2.CollectorService/PostSpans"}, handle)
}
