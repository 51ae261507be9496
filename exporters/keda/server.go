package keda

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// metricName is the only metric. In the HorizontalPodAutoscaler KEDA puts the trigger's index
// before it, and strips that before it asks.
const metricName = "trimtab-replicas"

const serviceName = "externalscaler.ExternalScaler"

// maxStreams bounds the streams that are open at a time.
const maxStreams = 1000

// service describes the calls of externalscaler.proto.
func service() *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: serviceName,
		HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{
			{MethodName: "IsActive", Handler: unary("IsActive", false, (*Exporter).isActive)},
			{MethodName: "GetMetricSpec", Handler: unary("GetMetricSpec", false, (*Exporter).metricSpec)},
			{MethodName: "GetMetrics", Handler: unary("GetMetrics", true, (*Exporter).metricValue)},
		},
		Streams: []grpc.StreamDesc{
			{StreamName: "StreamIsActive", Handler: stream((*Exporter).isActive), ServerStreams: true},
			{StreamName: "StreamMetricSpec", Handler: stream((*Exporter).metricSpec), ServerStreams: true},
		},
	}
}

// unary serves a call with one answer.
func unary(name string, nested bool, call func(*Exporter, *request) (answer, error)) grpc.MethodHandler {
	return func(srv any, ctx context.Context, read func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
		r := &request{nested: nested}
		if err := read(r); err != nil {
			return nil, err
		}
		handle := func(_ context.Context, _ any) (any, error) { return call(srv.(*Exporter), r) }
		if intercept == nil {
			return handle(ctx, r)
		}
		return intercept(ctx, r, &grpc.UnaryServerInfo{Server: srv, FullMethod: "/" + serviceName + "/" + name}, handle)
	}
}

// stream sends the answer at once and stays open, as it never changes. Without an answer it ends
// with the error, and KEDA opens it again later.
func stream(call func(*Exporter, *request) (answer, error)) grpc.StreamHandler {
	return func(srv any, s grpc.ServerStream) error {
		e, r := srv.(*Exporter), &request{}
		select {
		case e.streams <- struct{}{}:
			defer func() { <-e.streams }()
		default:
			return status.Errorf(codes.ResourceExhausted, "%d streams are open, which is the limit", maxStreams)
		}
		if err := s.RecvMsg(r); err != nil {
			return err
		}
		a, err := call(e, r)
		if err != nil {
			return err
		}
		if err := s.SendMsg(a); err != nil {
			return err
		}
		select {
		case <-s.Context().Done():
			return status.FromContextError(s.Context().Err()).Err()
		case <-e.quit:
			return nil // a clean end: KEDA opens it again without delay
		}
	}
}

// isActive answers that the workload is to run: trimtab scales nothing to 0.
func (e *Exporter) isActive(r *request) (answer, error) {
	w, _, err := e.advice.find(r)
	if err == nil {
		_, err = e.advice.replicas(w.Name)
	}
	if err != nil {
		return nil, err
	}
	return isActive(true), nil
}

// metricSpec answers with the target per pod, which needs no plan.
func (e *Exporter) metricSpec(r *request) (answer, error) {
	_, target, err := e.advice.find(r)
	if err != nil {
		return nil, err
	}
	return value(target), nil
}

// metricValue answers how many pods are wanted.
func (e *Exporter) metricValue(r *request) (answer, error) {
	w, target, err := e.advice.find(r)
	if err != nil {
		return nil, err
	}
	if r.metric != "" && r.metric != metricName {
		return nil, status.Errorf(codes.NotFound, "no metric %.100q, only %s", r.metric, metricName)
	}
	n, err := e.advice.replicas(w.Name)
	if err != nil {
		return nil, err
	}
	return value(n * target), nil
}
