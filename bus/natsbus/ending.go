package natsbus

import (
	"context"
	"fmt"
	"time"

	"github.com/trimtab/trimtab/bus"
)

// EndBy sets the time by which the process must end: all requests and writes to the store fail at
// that time. Otherwise a store that does not answer, such as one on a full disk, would delay the
// end by some seconds for each stage and state.
func (n *connection) EndBy(at time.Time) { n.endBy.Store(&at) }

// inTime returns ctx with the deadline set by EndBy, if any.
func (n *connection) inTime(ctx context.Context) (context.Context, context.CancelFunc) {
	if at := n.endBy.Load(); at != nil {
		return context.WithDeadline(ctx, *at)
	}
	return ctx, func() {}
}

// ending returns err; if the deadline of EndBy has passed, it adds that reason.
func (n *connection) ending(err error) error {
	if at := n.endBy.Load(); err != nil && at != nil && !time.Now().Before(*at) {
		return fmt.Errorf("%w: %w", bus.ErrEnding, err)
	}
	return err
}

// stopServer stops the embedded server. If the server does not stop in time, for example because
// its disk fails, it runs until the process ends, and keeps its lock until then.
func (n *connection) stopServer() {
	stopped := make(chan struct{})
	go func(e *embedded) {
		defer close(stopped)
		e.close()
	}(n.server)
	n.server = nil
	if n.endBy.Load() == nil {
		<-stopped
		return
	}
	late := time.NewTimer(stopWithin)
	defer late.Stop()
	select {
	case <-stopped:
	case <-late.C:
		n.config.Logger.Error("bus server does not stop", "waited", stopWithin)
	}
}
