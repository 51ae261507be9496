package natsbus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// pullExpiry is how long the server keeps one request for a message; heartbeat is how often the
	// server confirms in between that it still has the request.
	pullExpiry, heartbeat = 30 * time.Second, 2 * time.Second
)

// heartbeat is how often the server confirms a request of this bus. Confirming the requests of
// 1,000 agents, with three consumers each, every 2 s would take 1,500 messages a second, so an
// agent has a longer interval. A server inside this process does not disappear. After two missing
// confirmations the request is sent again.
func (c *Config) heartbeat() time.Duration {
	switch {
	case c.alone():
		return 5 * heartbeat
	case c.Role != Agent:
		return heartbeat
	}
	return max(heartbeat, min(5*heartbeat, c.Lease/12))
}

// errReconnected and errSilent end a pull: the server no longer has the request, or may not have
// it.
var (
	errReconnected = errors.New("reconnected")
	errSilent      = errors.New("consumer is silent")
)

// pull requests one message at a time from one consumer, by the protocol of JetStream: a request
// to $JS.API.CONSUMER.MSG.NEXT.<stream>.<consumer> whose answers are messages, or a status in the
// header.
type pull struct {
	conn    *nats.Conn
	sub     *nats.Subscription
	subject string
	request []byte
	// ackNext acknowledges a message and asks for the next in one.
	ackNext []byte
	// heartbeat is how often the server confirms that it still has the request.
	heartbeat time.Duration
	// asked says that the server has a request.
	asked bool
	// answers is called whenever a message of the server arrives; it may be nil.
	answers func()
}

func (n *connection) openPull(stream, consumer string) (*pull, error) {
	beat := n.config.heartbeat()
	request, err := json.Marshal(map[string]any{"batch": 1, "expires": max(pullExpiry, 6*beat), "idle_heartbeat": beat})
	if err != nil {
		return nil, err
	}
	sub, err := n.conn.SubscribeSync(n.conn.NewInbox())
	if err != nil {
		return nil, err
	}
	return &pull{conn: n.conn, sub: sub, heartbeat: beat, request: request, ackNext: append([]byte("+NXT "), request...), subject: n.api() + "CONSUMER.MSG.NEXT." + stream + "." + consumer}, nil
}

// next returns the next message. Any error ends the pull.
func (p *pull) next(ctx context.Context) (*nats.Msg, error) {
	for {
		if !p.asked {
			if err := p.conn.PublishRequest(p.subject, p.sub.Subject, p.request); err != nil {
				return nil, err
			}
			p.asked = true
		}
		m, err := p.wait(ctx)
		if err != nil {
			return nil, err
		}
		if len(m.Reply) > 0 && m.Header.Get("Status") == "" {
			p.asked = false
			p.answered()
			return m, nil
		}
		if err := p.status(m.Header.Get("Status"), m.Header.Get("Description")); err != nil {
			return nil, err
		}
		p.answered()
	}
}

func (p *pull) answered() {
	if p.answers != nil {
		p.answers()
	}
}

// done acknowledges m and asks for the next message.
func (p *pull) done(m *nats.Msg) error {
	err := p.conn.PublishMsg(&nats.Msg{Subject: m.Reply, Reply: p.sub.Subject, Data: p.ackNext})
	p.asked = err == nil
	return err
}

// wait waits for the next message of the server, of any kind.
func (p *pull) wait(ctx context.Context) (*nats.Msg, error) {
	timeout, cancel := context.WithTimeout(ctx, 2*p.heartbeat)
	defer cancel()
	m, err := p.sub.NextMsgWithContext(timeout)
	if err != nil && ctx.Err() == nil && timeout.Err() != nil {
		return nil, errSilent
	}
	return m, err
}

// status handles an answer that is a status, and not a message.
func (p *pull) status(code, text string) error {
	switch code {
	case "100": // heartbeat
		return nil
	case "404", "408": // the request expired
		p.asked = false
		return nil
	case "503":
		return jetstream.ErrNoStreamResponse
	}
	return fmt.Errorf("consumer answers %s %s", code, text)
}

// close ends the pull and passes messages that were already sent to late.
func (p *pull) close(late func(*nats.Msg)) {
	if p.sub.Drain() != nil {
		return
	}
	// A message that comes still later would keep the subscription for ever: draining waits until
	// all are read.
	defer func() { _ = p.sub.Unsubscribe() }()
	for {
		m, err := p.sub.NextMsg(100 * time.Millisecond)
		if err != nil {
			return
		}
		if m.Reply != "" && m.Header.Get("Status") == "" {
			late(m)
		}
	}
}

// The acknowledgements of a JetStream client. If one is lost, the message is delivered again.
func (d *storedSub) nak(m *nats.Msg)        { d.say(m, "-NAK") }
func (d *storedSub) term(m *nats.Msg)       { d.say(m, "+TERM") }
func (d *storedSub) inProgress(m *nats.Msg) { d.say(m, "+WPI") }

func (d *storedSub) nakLater(m *nats.Msg, delay time.Duration) {
	d.say(m, fmt.Sprintf(`-NAK {"delay": %d}`, delay.Nanoseconds()))
}

// ackOn acknowledges m and requests the next message, but not once ctx has ended: the next one
// would not be read, and the server would wait for its acknowledgement.
func (d *storedSub) ackOn(ctx context.Context, p *pull, m *nats.Msg) {
	if ctx.Err() != nil {
		d.say(m, "+ACK")
		return
	}
	d.unsaid(p.done(m))
}

func (d *storedSub) say(m *nats.Msg, word string) {
	d.unsaid(d.bus.conn.Publish(m.Reply, []byte(word)))
}

func (d *storedSub) unsaid(err error) {
	if err != nil {
		d.bus.config.Logger.Debug("bus acknowledgement not sent", "kind", d.Kind, "consumer", d.label(), "err", err)
	}
}
