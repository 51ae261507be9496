package beside

import (
	"context"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/console/view"
)

// publisher is the part of a bus that publishes.
type publisher interface {
	Publish(ctx context.Context, v trimtab.Value) error
}

// tellEvery is how often the state of jobs is published for the consoles of a fleet while nothing
// changes.
const tellEvery = 5 * time.Second

// published is the state that was published last, and when.
type published struct {
	state *view.Colocation
	at    time.Time
}

// tell shows the state of the jobs and publishes it: at once if something was decided or done, else
// every few seconds. Publishing never waits. A message is lost while the link is cut; the next one
// contains the whole state again.
func (h *jobHost) tell(ctx context.Context, now time.Time, out *done) {
	h.show(now, out)
	c := h.Colocation()
	if h.bus == nil || c.Time.IsZero() || !isNews(h.published.state, c) && now.Sub(h.published.at) < tellEvery {
		return
	}
	h.published = published{c, now}
	if err := h.bus.Publish(ctx, c.Brief()); err != nil && ctx.Err() == nil {
		h.logger.Debug("tell of best-effort jobs", "err", err)
	}
}

// isNews reports whether something was decided or done since the last message.
func isNews(before, now *view.Colocation) bool {
	if before == nil || before.Paused != now.Paused || before.Problem != now.Problem || before.Kills != now.Kills ||
		before.Running != now.Running || before.Suspended != now.Suspended || (before.Last == nil) != (now.Last == nil) {
		return true
	}
	return now.Last != nil && !before.Last.Time.Equal(now.Last.Time)
}
