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

// service serves Export.
type service struct {
	from  *collector.Source
	cache collector.ResourceCache
	// refused counts a request that was refused whole, by reason: before its
	// answer, but for a request that gRPC cannot read. That one gRPC answers
	// before it says so here.
	refused func(reason string)
}

// newServer returns the gRPC server, with Export and c.Register's services.
func newServer(c *Config, s *service) *grpc.Server {
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
		grpc.UnaryInterceptor(releaseDeadline),
		grpc.UnknownServiceHandler(unknown),
	}
	if c.TLS != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(c.TLS)))
	}
	server := grpc.NewServer(options...)
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: traceService,
		HandlerType: (*any)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: "Export", Handler: export}},
	}, s)
	if c.Register != nil {
		c.Register(server)
	}
	return server
}

// export reads one request, waits for the analyzer and answers.
func export(srv any, ctx context.Context, read func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	defer release(ctx)
	s := srv.(*service)
	packer := s.from.Packer()
	defer s.from.Recycle(packer)
	c := call{cache: &s.cache, packer: packer}
	if err := read(&c); err != nil {
		reason, err := Unread(err)
		s.refused(reason)
		return nil, err
	}
	if c.err != nil {
		s.refused("malformed")
		return nil, status.Error(codes.InvalidArgument, c.err.Error())
	}
	if err := s.from.Send(ctx, packer); err != nil {
		return nil, Unavailable(err)
	}
	return Answer(partialOf(packer).protobuf()), nil
}

// unknown answers for services that are not here.
func unknown(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	if strings.HasPrefix(method, "/opentelemetry.proto.collector.") {
		return status.Errorf(codes.Unimplemented, "%s: this receiver takes traces only", method)
	}
	return status.Errorf(codes.Unimplemented, "%s: no such method", method)
}
