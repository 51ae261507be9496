package otlp

import (
	"context"
	"time"
)

// deadlineKey finds the cancel function that withDeadline left in a context.
type deadlineKey struct{}

// withDeadline bounds a stream from its headers on, so that a client that
// trickles its body is cut off too; a handler starts only after the body.
func withDeadline(ctx context.Context, timeout time.Duration) (context.Context, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	return context.WithValue(ctx, deadlineKey{}, cancel), nil
}

// release stops the timer of a request that is done.
func release(ctx context.Context) {
	if cancel, ok := ctx.Value(deadlineKey{}).(context.CancelFunc); ok {
		cancel()
	}
}
