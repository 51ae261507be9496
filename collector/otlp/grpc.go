package otlp

import (
	"context"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/trimtab/trimtab/collector"
)

// traceService is the full name of the OTLP service.
const traceService = "opentelemetry.proto.collector.trace.v1.TraceService"

// Service serves a gRPC method that takes spans. It answers when an analyzer has handled all spans of
// the request.
type Service struct {
	// From sends and counts the spans.
	From *collector.Source
	// Scan packs the spans of an encoded request, which is valid only during the call.
	Scan func(request []byte, cache *collector.ResourceCache, p *collector.Packer) error
	// Answer encodes the response to a request whose spans were handled.
	Answer func(p *collector.Packer) ([]byte, error)
	// Refused counts a request that was refused whole, by reason: before its answer, but for a
	// request that gRPC cannot read. That one gRPC answers before it says so here.
	Refused func(reason string)

	cache collector.ResourceCache
}

// Register adds a method of a service to the server of a [Receiver], whose codec it needs.
func (s *Service) Register(r grpc.ServiceRegistrar, service, method string) {
	r.RegisterService(&grpc.ServiceDesc{
		ServiceName: service,
		HandlerType: (*any)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: method, Handler: serve}},
	}, s)
}

// newServer returns the gRPC server, with Export and c.Register's services.
func newServer(c *Config, s *Service) *grpc.Server {
	options := []grpc.ServerOption{
		grpc.ForceServerCodecV2(newCodec()),
		grpc.MaxRecvMsgSize(c.MaxBody),
		grpc.MaxHeaderListSize(64 << 10),
		grpc.MaxConcurrentStreams(256),
		grpc.ReadBufferSize(128 << 10),
		// The windows have a fixed size: to find the best one the server would ask the sender for
		// an answer with each request, which wakes both once more. A full window costs a round
		// trip: at 10 ms, 100 MiB/s for each request.
		grpc.StaticStreamWindowSize(1 << 20),
		grpc.StaticConnWindowSize(4 << 20),
		grpc.WriteBufferSize(8 << 10),
		grpc.NumStreamWorkers(64),
		grpc.ConnectionTimeout(c.Timeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: 10 * c.Timeout, Time: c.Timeout, Timeout: c.Timeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
		grpc.InTapHandle(func(ctx context.Context, _ *tap.Info) (context.Context, error) {
			return withDeadline(ctx, c.Timeout)
		}),
		grpc.UnknownServiceHandler(unknown),
	}
	if c.TLS != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(c.TLS)))
	}
	server := grpc.NewServer(options...)
	s.Register(server, traceService, "Export")
	if c.Register != nil {
		c.Register(server)
	}
	return server
}

// serve reads one request, waits for the analyzer and answers.
func serve(srv any, ctx context.Context, read func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	defer release(ctx)
	s := srv.(*Service)
	packer := s.From.Packer()
	defer s.From.Recycle(packer)
	c := call{service: s, packer: packer}
	if err := read(&c); err != nil {
		reason, err := unread(err)
		s.Refused(reason)
		return nil, err
	}
	if c.err != nil {
		s.Refused("malformed")
		return nil, status.Error(codes.InvalidArgument, c.err.Error())
	}
	if err := s.From.Send(ctx, packer); err != nil {
		return nil, unavailable(err)
	}
	return s.Answer(packer)
}

// unknown answers for services that are not here.
func unknown(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	if strings.HasPrefix(method, "/opentelemetry.proto.collector.") {
		return status.Errorf(codes.Unimplemented, "%s: this receiver takes traces only", method)
	}
	return status.Errorf(codes.Unimplemented, "%s: no such method", method)
}
