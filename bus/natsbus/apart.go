package natsbus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/nats-io/nats.go"

	"github.com/trimtab/trimtab/internal/hint"
)

var errApart = errors.New("cut off from the NATS servers")

// apart returns an error while this process is cut off from external servers. The error tells the
// operator what is cut off, what continues meanwhile, and as its hint what to do.
func (n *connection) apart() error {
	at := ""
	switch {
	case n.leaf != nil && !n.leaf.joined():
		at = n.leaf.addresses
	case n.leaf == nil && n.config.URL != "" && n.conn.Status() != nats.CONNECTED:
		at = redact(n.config.URL)
	default:
		return nil
	}
	err := fmt.Errorf("%w at %s", errApart, at)
	if n.config.Role == "" || n.config.Role == Agent {
		err = fmt.Errorf("%w: this host keeps what the last plan gave until its lease ends, then its baselines come back by themselves", err)
	}
	return hint.Add(err, "is nats-server up, does this host reach it, and are the credentials right? Nothing needs a restart here: the link is tried again by itself, and plans go on once it is back")
}

// apartError has the text of apart in place of the error that it explains; errors.Is finds both.
type apartError struct {
	error
	cause error
}

func (e apartError) Unwrap() []error { return []error{e.error, e.cause} }

// plain returns err, or the error of apart if that is the cause of err.
func (n *connection) plain(err error) error {
	if !isMissing(err) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, errAway) && !errors.Is(err, nats.ErrTimeout) {
		return err
	}
	if cut := n.apart(); cut != nil {
		return apartError{cut, err}
	}
	return err
}

// unreached reports to Trouble and the log that the consumer cannot be reached; to the log only
// once for each reason, since it may last for hours.
func (d *storedSub) unreached(err error) {
	err = d.bus.plain(err)
	d.report(err)
	level := slog.LevelWarn
	if d.unreachable == err.Error() {
		level = slog.LevelDebug
	}
	d.unreachable = err.Error()
	args := []any{"kind", d.Kind, "consumer", d.label(), "err", err}
	if h := hint.Of(err); h != "" {
		args = append(args, "hint", h)
	}
	d.bus.config.Logger.Log(context.Background(), level, "bus consumer cannot be reached", args...)
}
