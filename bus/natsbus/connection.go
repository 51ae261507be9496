package natsbus

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/trimtab/trimtab"
)

// connection reaches the server; an embedded server is part of it.
type connection struct {
	config Config
	conn   *nats.Conn
	js     jetstream.JetStream
	server *embedded // nil with an external one
	leaf   *leafNode // nil where this process is no leaf node
	secret string    // of an agent, see [SecretOf]

	damaged  struct{ stores, consumers atomic.Uint64 }
	untested atomic.Bool // see Untested

	making sync.Mutex // see makes

	// endBy is the deadline of requests while the process ends; nil: the process is not ending.
	endBy atomic.Pointer[time.Time]

	mu    sync.Mutex
	again chan struct{} // closed at the next reconnection
}

// readSecret reads the key that identifies an agent.
func (n *connection) readSecret() error {
	if n.config.Role != Agent || n.config.Key == "" {
		return nil
	}
	key, err := os.ReadFile(n.config.Key)
	if err != nil {
		return fmt.Errorf("read key of the agent: %w", err)
	}
	n.secret = SecretOf(key)
	return nil
}

func (n *connection) connect() error {
	opts, err := n.config.secure()
	if err != nil {
		return err
	}
	opts = append(opts, n.config.options()...)
	opts = append(opts, nats.ReconnectHandler(n.reconnected))
	url := n.config.URL
	if url == "" {
		if n.server, err = startEmbedded(n.config); err != nil {
			return err
		}
		n.damaged.stores.Add(n.server.stores)
		n.damaged.consumers.Add(n.server.consumers)
		opts = append(opts, nats.InProcessServer(n.server))
	}
	if n.conn, err = nats.Connect(url, opts...); err == nil {
		n.js, err = n.jetStream()
	}
	if err != nil {
		n.disconnect()
		if errors.Is(err, nats.ErrAuthorization) {
			err = fmt.Errorf("%w: token, user or credentials are not accepted: %w", trimtab.ErrRefused, err)
		}
		return fmt.Errorf("connect to bus %s: %w", or(redact(url), "embedded"), err)
	}
	n.greet(n.conn)
	return nil
}

// greet records whether the NATS server is of another release than the tested one.
func (n *connection) greet(c *nats.Conn) {
	v := c.ConnectedServerVersion()
	n.untested.Store(releaseOf(v) != releaseOf(server.VERSION))
	if n.untested.Load() {
		n.config.Logger.Warn("NATS server is of another release than trimtab is tested with", "server", v, "tested", server.VERSION)
	}
}

// releaseOf returns "2.15" of "2.15.1-beta.3".
func releaseOf(version string) string {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	return major + "." + minor
}

// makes lets one goroutine at a time create or delete a stream, a bucket or a consumer, until
// done is called: nats-server handles such requests concurrently, and has races. A request to an
// embedded server is not cancelled, since the server would keep the goroutines of what is half
// created; so ctx ends late.
func (n *connection) makes(ctx context.Context) (_ context.Context, done func()) {
	n.making.Lock()
	if n.server == nil {
		return ctx, n.making.Unlock
	}
	ctx, ended := n.inTime(context.WithoutCancel(ctx))
	ctx, cancel := context.WithTimeout(ctx, makeWithin)
	return ctx, func() { cancel(); ended(); n.making.Unlock() }
}

// makeWithin bounds how long an embedded server may take to create something.
const makeWithin = 10 * time.Second

func (n *connection) disconnect() {
	if n.conn != nil {
		n.conn.Close()
	}
	if n.server != nil {
		n.stopServer()
	}
	if n.leaf != nil {
		n.leaf.close()
		n.leaf = nil
	}
}

// URL returns where other processes reach this bus; empty when they cannot.
func (n *connection) URL() string {
	switch {
	case n.server == nil:
		return n.config.URL
	case n.config.Listen == "":
		return ""
	}
	return n.server.ClientURL()
}

// Ready returns an error while the server is out of reach, or the embedded one
// cannot write its store.
func (n *connection) Ready() error {
	if err := n.apart(); err != nil || n.server == nil {
		return err
	}
	if s := n.conn.Status(); s != nats.CONNECTED {
		return fmt.Errorf("bus is %s", s)
	}
	if why := n.server.log.storing(time.Now().Add(-unstoredFor)); why != nil {
		// A stream of nats-server that failed to write stays as it is.
		return fmt.Errorf("bus cannot write its store: %w; make room on its disk, then restart this process", why)
	}
	return nil
}

// unstoredFor is how long an error of the embedded server's store stays valid: every stage
// retries more often than that.
const unstoredFor = 15 * time.Second

// Damaged returns how many stores were moved aside and how many consumers started over since the
// bus was opened, because they were damaged.
func (n *connection) Damaged() (stores, consumers uint64) {
	return n.damaged.stores.Load(), n.damaged.consumers.Load()
}

// Untested reports whether the NATS server that this process is connected to is of
// another release than trimtab is tested with. Of a leaf node it is the central
// server that it asked when it started.
func (n *connection) Untested() bool { return n.untested.Load() }

// reconnected wakes all that wait for an answer of the former server.
func (n *connection) reconnected(c *nats.Conn) {
	n.config.Logger.Info("bus reconnected", "url", c.ConnectedUrlRedacted())
	n.greet(c)
	n.wake()
}

// wake makes all waiters give up on an answer that may never come.
func (n *connection) wake() {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.again)
	n.again = make(chan struct{})
}

// untilReconnect returns a context that ends with ctx or at the next
// reconnection.
func (n *connection) untilReconnect(ctx context.Context) (context.Context, context.CancelFunc) {
	n.mu.Lock()
	again := n.again
	n.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-again:
			cancel(errReconnected)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// unanswered adds to the error of a request that began then why the embedded
// server did not answer: one that cannot write only logs it.
func (n *connection) unanswered(began time.Time, err error) error {
	if n.server == nil || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if why := n.server.log.storing(began); why != nil {
		return fmt.Errorf("%w: %w", why, err)
	}
	return err
}

// flush waits until the server has read everything sent before.
func (n *connection) flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return n.conn.FlushWithContext(ctx)
}
