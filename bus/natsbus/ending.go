package natsbus

import (
	"context"
	"fmt"
	"time"

	"github.com/trimtab/trimtab/bus"
)

// EndBy sets the time by which the process must end: from now on all storing and asking together
// fail at that time. Otherwise a store that does not answer, as on a full disk, would take some
// seconds for each stage and state.
func (n *connection) EndBy(at time.Time) { n.endBy.Store(&at) }

// inTime is ctx, cut off where the process must no longer wait.
func (n *connection) inTime(ctx context.Context) (context.Context, context.CancelFunc) {
	if at := n.endBy.Load(); at != nil {
		return context.WithDeadline(ctx, *at)
	}
	return ctx, func() {}
}

// ending is err, with the reason where the process must no longer wait.
func (n *connection) ending(err error) error {
	if at := n.endBy.Load(); err != nil && at != nil && !time.Now().Before(*at) {
		return fmt.Errorf("%w: %w", bus.ErrEnding, err)
	}
	return err
}

// stopServer stops the embedded server. One that does not stop in time, as on a disk that
// fails, is left to the end of the process, with its lock.
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
