package natsbus

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Reached is the result of [Reach].
type Reached struct {
	// Server is the version of the server; Trip is the round-trip time of a request.
	Server string
	Trip   time.Duration
	// Missing are the streams that the role uses and that do not exist yet.
	Missing []string
}

// Reach connects to the external server of c, checks as [Open] does whether its user may do what
// the role needs, and disconnects. It creates nothing. Its error is that of Open.
func Reach(ctx context.Context, c Config) (found Reached, err error) {
	if err := c.Validate(); err != nil {
		return found, err
	}
	b := newBus(c.withDefaults())
	if err := b.readSecret(); err != nil {
		return found, err
	}
	if err := b.connect(); err != nil {
		return found, err
	}
	defer b.disconnect()
	found.Server = b.conn.ConnectedServerVersion()
	if err := b.permitted(ctx); err != nil {
		return found, fmt.Errorf("open bus %s: %w", redact(c.URL), err)
	}
	if found.Trip, err = b.conn.RTT(); err != nil {
		return found, fmt.Errorf("wait for an answer of bus %s: %w", redact(c.URL), err)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for _, s := range b.streams {
		used := c.Role == "" || slices.Contains(s.Publish, c.Role) || slices.Contains(s.Read, c.Role)
		if s.Name == "" || s.Bucket || !used {
			continue
		}
		switch _, err := b.js.Stream(ctx, stream(s)); {
		case isMissing(err):
			found.Missing = append(found.Missing, s.Name)
		case err != nil:
			return found, fmt.Errorf("find stream %s: %w", s.Name, err)
		}
	}
	return found, nil
}
