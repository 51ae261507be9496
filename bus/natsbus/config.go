package natsbus

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/trimtab/trimtab"
)

// Config says which bus to open. The zero value of every field but Source and
// Dir is usable.
type Config struct {
	// URL is the external server, several separated by commas; empty: an
	// embedded server that stores in Dir.
	URL string
	// Leaf is the address at which the servers of URL accept leaf nodes, several separated by
	// commas, for an agent: a server without a store runs in this process and joins them with
	// Cert, Key and CA; URL is only used at the start. Empty: this process is a client of URL.
	Leaf string
	// Dir is where the embedded server stores; needed without URL.
	Dir string
	// Listen is a loopback host:port on which the embedded server is open to other processes of
	// this host, without a password; empty: it is not open.
	Listen string
	// Source names this publisher in every Origin; needed, at most 253 bytes.
	Source string
	// Role is the role of this process, for an external server that limits users to their role;
	// empty: all roles. With a role, opening fails if the server does not allow what the role
	// needs, and only a planner creates streams and buckets: the others wait for them. Host and
	// Pool are those of an agent.
	Role       Role
	Host, Pool string
	// Lease is the lease of the plans that an Agent carries out: within a sixth of it, and 4 to
	// 20 s, the agent notices that a consumer no longer answers. 0: 4 s.
	Lease time.Duration
	// Login is what this process shows to the external server.
	Login Login
	// CA, Cert and Key are PEM files for TLS to the external server; Cert and Key are set
	// together.
	CA, Cert, Key string
	// TLS replaces CA, Cert and Key when it is not nil.
	TLS *tls.Config
	// MaxStore is the largest size of the embedded server's store, in bytes; 0: 1 GiB.
	MaxStore int64
	// Replicas is how many servers of an external cluster hold each stream; 0: 1.
	Replicas int
	// Limits overrides MaxBytes of streams by name; see [Table].
	Limits map[string]int64
	// AckWait is how long a consumer may be silent before its value is given to another; it is
	// extended while a handler runs; 0: 2 s.
	AckWait time.Duration
	// MaxDeliver is how often a value is delivered before it becomes a dead letter; 0: 10.
	MaxDeliver int
	// Pause is the first pause before a redelivery; it doubles up to 5 s; 0: 100 ms.
	Pause time.Duration
	// AnswerTimeout is how long Publish waits for the answer to an Answered
	// value; 0: 10 s.
	AnswerTimeout time.Duration
	// PublishTimeout is how long Publish tries to store a Durable or Latest
	// value, over restarts of the server; 0: 30 s.
	PublishTimeout time.Duration
	// PendingBytes limits, for each subscription, the telemetry that waits for its handler, and the
	// telemetry that waits to be sent. The surplus is dropped and counted; 0: 16 MiB.
	PendingBytes int
	// Logger receives the log of the connection and of the embedded server; nil: no log.
	Logger *slog.Logger
}

// Login is the secret of a client: at most one of the fields is set. A user and a password go into
// [Config].URL.
type Login struct {
	// Credentials is a NATS .creds file, NKey the file of an nkey seed, Token the token itself.
	Credentials, NKey, Token string
}

// Validate fills nothing in; it returns ErrInvalid or ErrRefused with the
// field that is wrong.
func (c *Config) Validate() error {
	switch {
	case c.Source == "" || len(c.Source) > 253:
		return trimtab.Invalidf("source %.40q: want 1 to 253 bytes", c.Source)
	case c.URL == "" && c.Dir == "":
		return trimtab.Invalidf("bus: neither a URL nor a directory to store in")
	case c.URL != "" && c.Listen != "":
		return trimtab.Invalidf("listen on %s: there is no embedded server beside %s", c.Listen, c.URL)
	case (c.Cert == "") != (c.Key == ""):
		return trimtab.Invalidf("bus: a certificate and its key come together")
	case c.Login.Credentials != "" && c.Login.NKey != "", c.Login.Token != "" && c.Login.Credentials+c.Login.NKey != "":
		return trimtab.Invalidf("bus: credentials, an nkey or a token, not several of them")
	case c.URL == "" && (c.Login.Credentials+c.Login.NKey+c.Login.Token+c.CA+c.Cert != "" || c.TLS != nil):
		return trimtab.Invalidf("bus: TLS and credentials are for an external server, and there is no URL")
	case c.URL == "" && c.Role != "":
		return trimtab.Invalidf("bus: a %s needs the URL of the server on which it meets the others", c.Role)
	case c.Leaf != "" && (c.URL == "" || c.Role != Agent || c.Cert == ""):
		return trimtab.Invalidf("bus: a leaf node is an agent that has the URL of its servers and a certificate")
	case c.Role == Agent && (c.Host == "" || c.Pool == ""):
		return trimtab.Invalidf("bus: an agent needs its host and its pool")
	case c.MaxStore < 0 || c.AckWait < 0 || c.MaxDeliver < 0 || c.AnswerTimeout < 0 || c.PendingBytes < 0:
		return trimtab.Invalidf("bus: a limit is below zero")
	}
	if c.Listen == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w: %w", c.Listen, trimtab.ErrInvalid, err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("listen on %s: not a loopback address; other hosts need a nats-server of its own with credentials: %w", c.Listen, trimtab.ErrRefused)
	}
	return nil
}

// withDefaults returns c with every zero that has a default replaced.
func (c Config) withDefaults() Config {
	c.MaxStore = or(c.MaxStore, 1<<30)
	c.Replicas = or(c.Replicas, 1)
	c.AckWait = or(c.AckWait, 2*time.Second)
	c.MaxDeliver = or(c.MaxDeliver, 10)
	c.Pause = or(c.Pause, 100*time.Millisecond)
	c.AnswerTimeout = or(c.AnswerTimeout, 10*time.Second)
	c.PublishTimeout = or(c.PublishTimeout, 30*time.Second)
	c.PendingBytes = or(c.PendingBytes, 16<<20)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func or[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// options returns the connection's options that both kinds of server share.
func (c *Config) options() []nats.Option {
	log := c.Logger
	var opts []nats.Option
	if c.Role != "" {
		opts = append(opts, nats.CustomInboxPrefix(Inbox(c.Role, c.Host)))
	}
	return append(opts,
		nats.Name("trimtab "+c.Source),
		nats.MaxReconnects(-1),
		// An operator may change the secrets of the server and of this process one after the other.
		nats.IgnoreAuthErrorAbort(),
		nats.CustomReconnectDelay(reconnectDelay),
		nats.ReconnectBufSize(c.PendingBytes),
		// For each of some 20 subscriptions, the default of 64 Ki slots takes half a MiB. What is
		// sent at once is bounded by maxQueued.
		nats.SyncQueueLen(c.places()),
		nats.PingInterval(20*time.Second),
		nats.MaxPingsOutstanding(2),
		nats.Timeout(5*time.Second),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn("bus disconnected", "err", err)
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, s *nats.Subscription, err error) {
			subject := ""
			if s != nil {
				subject = s.Subject
			}
			log.Warn("bus error", "subject", subject, "err", err)
		}),
	)
}

// places is how many messages may wait for the handler of one subscription. If no other process
// is on the bus, only stored messages come that way, one after the other (see pull and near). A
// process in a fleet has few subscriptions, and more senders than itself.
func (c *Config) places() int {
	switch {
	case c.alone():
		return maxQueued / 8
	case c.Role == "" || c.Role == Agent:
		return 2 * maxQueued
	}
	return 16 * maxQueued
}

// reconnectDelay backs off from 50 ms to 2 s.
func reconnectDelay(attempt int) time.Duration {
	return min(50*time.Millisecond<<min(attempt, 8), 2*time.Second)
}

// secure returns the options for TLS and credentials of an external server.
func (c *Config) secure() ([]nats.Option, error) {
	var opts []nats.Option
	if c.TLS != nil {
		opts = append(opts, nats.Secure(c.TLS))
	} else {
		if c.CA != "" {
			opts = append(opts, nats.RootCAs(c.CA))
		}
		if c.Cert != "" {
			opts = append(opts, nats.ClientCert(c.Cert, c.Key))
		}
	}
	if c.Login.Token != "" {
		opts = append(opts, nats.Token(c.Login.Token))
	}
	if c.Login.Credentials != "" {
		opts = append(opts, nats.UserCredentials(c.Login.Credentials))
	}
	if c.Login.NKey != "" {
		o, err := nats.NkeyOptionFromSeed(c.Login.NKey)
		if err != nil {
			return nil, fmt.Errorf("read nkey %s: %w", c.Login.NKey, err)
		}
		opts = append(opts, o)
	}
	return opts, nil
}
