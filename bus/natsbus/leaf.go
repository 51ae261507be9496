package natsbus

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hint"
	"github.com/trimtab/trimtab/internal/pause"
)

// Domain is the JetStream domain of the central servers. A server does not pass requests to
// JetStream without a domain on to its leaf nodes, nor theirs to itself.
const Domain = "trimtab"

const (
	jetStreamAPI = "$JS.API."
	domainAPI    = "$JS." + Domain + ".API."
)

const (
	// leafPing is how often a leaf node tests its link, and leafSilence how many answers may be
	// missing before it connects again. Until then messages wait in the link, and arrive late if
	// the link recovers.
	leafPing    = 5 * time.Second
	leafSilence = 2
	// leafPatience bounds each step of joining; a busy host takes its time.
	leafPatience = 10 * time.Second
)

// leafNode is a nats-server inside this process that stores nothing and joins central servers.
// Its only client is this process. While the link is cut, no subscription from the central
// servers exists, so what is published is dropped: it does not arrive later as if it were new.
// The central servers apply the permissions of the user that the certificate names.
type leafNode struct {
	*server.Server
	addresses string
}

// startLeaf starts the server and returns when it has joined.
func startLeaf(ctx context.Context, c Config) (*leafNode, error) {
	secure, err := c.tls()
	if err != nil {
		return nil, err
	}
	remote := &server.RemoteLeafOpts{TLS: true, TLSConfig: secure, TLSTimeout: leafPatience.Seconds(), FirstInfoTimeout: leafPatience, DialTimeout: leafPatience,
		IgnoreDiscoveredServers: true, // it is configured with all of them
		// By default both ends compress, which takes 4 MiB of each for every link:
		// more than all else that an agent costs a central server.
		Compression: server.CompressionOpts{Mode: server.CompressionOff},
	}
	for address := range strings.SplitSeq(c.Leaf, ",") {
		u, err := url.Parse(strings.TrimSpace(address))
		if err != nil {
			return nil, fmt.Errorf("read address of leaf nodes: %w", err)
		}
		remote.URLs = append(remote.URLs, u)
	}
	s, err := server.NewServer(&server.Options{
		// Central servers end an earlier connection of the same name: of this
		// process, not of one that has its host's name by mistake.
		ServerName: fmt.Sprintf("trimtab-%s-%d", c.Host, time.Now().UnixMicro()),
		DontListen: true, NoSigs: true, NoLog: true, MaxPayload: MaxPayload, MaxControlLine: 8 << 10, MaxPending: 64 << 20,
		PingInterval: leafPing, MaxPingsOut: leafSilence,
		// The cache would remember 1,024 subjects of requests, answers and acknowledgements, none
		// of which is used again, and an agent takes hours to fill it.
		NoSublistCache: true,
		LeafNode:       server.LeafNodeOpts{ReconnectInterval: time.Second, Remotes: []*server.RemoteLeafOpts{remote}},
	})
	if err != nil {
		return nil, fmt.Errorf("make leaf node: %w", err)
	}
	s.SetLoggerV2(&serverLog{log: c.Logger}, false, false, false)
	s.Start()
	l := &leafNode{s, redact(c.Leaf)}
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for !l.joined() {
		if pause.For(ctx, 20*time.Millisecond); ctx.Err() != nil {
			l.close()
			return nil, hint.Add(fmt.Errorf("join as leaf node: %w at %s", errApart, l.addresses),
				"is nats-server up there, does this host reach it, and is its certificate that of an agent?")
		}
	}
	return l, nil
}

// joined reports whether the link to a central server is up.
func (l *leafNode) joined() bool { return l.NumLeafNodes() > 0 }

func (l *leafNode) close() {
	l.Shutdown()
	l.WaitForShutdown()
}

// becomeLeaf replaces the connection to the central servers, which showed this user's permissions
// and that the streams exist, by one to a leaf node.
func (n *connection) becomeLeaf(ctx context.Context) error {
	n.conn.Close()
	l, err := startLeaf(ctx, n.config)
	if err != nil {
		return err
	}
	n.leaf = l
	opts := append(n.config.options(), nats.ReconnectHandler(n.reconnected), nats.InProcessServer(l))
	if n.conn, err = nats.Connect("", opts...); err != nil {
		return fmt.Errorf("connect to own leaf node: %w", err)
	}
	go n.followLink(l)
	n.js, err = n.jetStream()
	return err
}

// followLink wakes all waiters once the link of a leaf node is back: their requests were lost
// with it, and their own connection, to the leaf node, was never cut.
func (n *connection) followLink(l *leafNode) {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for was := true; l.Running(); was = l.joined() {
		if l.joined() && !was {
			n.wake()
		}
		<-t.C
	}
}

// api is the prefix of requests to JetStream.
func (n *connection) api() string {
	if n.leaf != nil {
		return domainAPI
	}
	return jetStreamAPI
}

func (n *connection) jetStream() (jetstream.JetStream, error) {
	timeout := jetstream.WithDefaultTimeout(5 * time.Second)
	if n.leaf != nil {
		return jetstream.NewWithDomain(n.conn, Domain, timeout)
	}
	return jetstream.New(n.conn, timeout)
}

// tls is the configuration of a link that both sides prove themselves on. The
// certificate is read at each connection: it may have been renewed.
func (c *Config) tls() (*tls.Config, error) {
	if c.TLS != nil {
		return c.TLS, nil
	}
	out := &tls.Config{MinVersion: tls.VersionTLS12, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
		return &pair, err
	}}
	if c.CA == "" {
		return out, nil
	}
	authorities, err := os.ReadFile(c.CA)
	if err != nil {
		return nil, fmt.Errorf("read authorities of bus: %w", err)
	}
	if out.RootCAs = x509.NewCertPool(); !out.RootCAs.AppendCertsFromPEM(authorities) {
		return nil, trimtab.Invalidf("authorities of bus: no certificate in %s", c.CA)
	}
	return out, nil
}
