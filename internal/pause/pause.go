// Package pause waits for a while that a context may cut short.
package pause

import (
	"context"
	"time"
)

// For waits for d, and reports false when ctx ended before.
func For(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
