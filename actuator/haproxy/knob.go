package haproxy

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/internal/haproxy"
)

// Config names the server.
type Config struct {
	// Socket is HAProxy's stats socket: an absolute path, or HOST:PORT.
	Socket  string `json:"socket"`
	Backend string `json:"backend"`
	Server  string `json:"server"`
}

func (c *Config) validate() error {
	if _, _, err := haproxy.Dialed(c.Socket); err != nil {
		return err
	}
	if !haproxy.Plain(c.Backend) || !haproxy.Plain(c.Server) {
		return trimtab.Invalidf("server %.40q/%.40q of HAProxy: want the names of backend and server, of letters, digits, -, _, . and :", c.Backend, c.Server)
	}
	return nil
}

// MaxConn is the maxconn of one server in one process of HAProxy. It is an [actuator.Knob]. It
// opens a connection for each use: an open one would keep an HAProxy process alive that a reload
// has told to stop.
type MaxConn struct {
	config Config
	// of is the HAProxy process that this knob read first; "": it has read none yet.
	of haproxy.Process
}

// Traits returns the optional abilities of this knob. It is remote: other programs and people set
// maxconn through the same socket.
func (k *MaxConn) Traits() actuator.Traits {
	return actuator.Traits{Location: k.Location, Hopeless: func(context.Context) string { return "" }}
}

// Open checks the names. It does not connect: Probe reports whether the server exists.
func Open(c Config) (*MaxConn, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &MaxConn{config: c}, nil
}

// kind is the format name in what Undo returns.
const kind = "haproxy-maxconn/1"

type undo struct {
	Config
	Process haproxy.Process `json:"process,omitempty"`
}

// Reopen opens the knob that undo describes. The error is trimtab.ErrUnsupported if undo belongs to
// another kind of knob.
func Reopen(b []byte) (*MaxConn, error) {
	u, err := actuator.ReadUndo[undo](kind, b)
	if err != nil {
		return nil, err
	}
	k, err := Open(u.Config)
	if err == nil {
		k.of = u.Process
	}
	return k, err
}

// Undo describes the knob for Reopen, including the HAProxy process: trimtab does not restore a
// limit in a process that began later.
func (k *MaxConn) Undo() []byte { return actuator.UndoOf(kind, undo{k.config, k.of}) }

// String names the server.
func (k *MaxConn) String() string {
	return "maxconn of HAProxy server " + k.config.Backend + "/" + k.config.Server
}

// Resource returns "concurrency".
func (k *MaxConn) Resource() string { return trimtab.Concurrency }

// Close does nothing: the knob has no open connection.
func (k *MaxConn) Close() error { return nil }

// Location identifies the server by its HAProxy process, so that two sockets of one process give the
// same identity.
func (k *MaxConn) Location() (string, error) {
	if k.of == "" {
		if _, _, err := k.look(context.Background()); err != nil {
			return "", err
		}
	}
	return path.Join("/haproxy", string(k.of), k.config.Backend, k.config.Server), nil
}

// look reads the server's maxconn and sends the commands in more. The error is os.ErrNotExist if
// the backend or server is gone, or if another HAProxy process answers than the first time.
func (k *MaxConn) look(ctx context.Context, more ...string) (trimtab.Amount, haproxy.Backend, error) {
	found, err := haproxy.Look(ctx, k.config.Socket, k.config.Backend, more...)
	if err != nil {
		return trimtab.Amount{}, found, err
	}
	if k.of != "" && k.of != found.Of {
		return trimtab.Amount{}, found, fmt.Errorf("HAProxy was restarted or reloaded, and has its configured limits: %w", os.ErrNotExist)
	}
	limit, ok := found.Limit(k.config.Server)
	if !ok {
		return trimtab.Amount{}, found, fmt.Errorf("backend %s of HAProxy has no server %s: `show servers state %[1]s` lists them: %[3]w", k.config.Backend, k.config.Server, os.ErrNotExist)
	}
	k.of = found.Of
	return limit, found, nil
}

// Probe returns an error if the server does not exist.
func (k *MaxConn) Probe(ctx context.Context) error {
	_, err := k.Read(ctx)
	return err
}

// MayWrite returns an error if the socket's level does not allow setting limits.
func (k *MaxConn) MayWrite(ctx context.Context) error {
	_, found, err := k.look(ctx, "show cli level")
	if err == nil && strings.TrimSpace(found.Rest) != "admin" {
		err = haproxy.ErrLevel
	}
	if err != nil {
		return fmt.Errorf("probe %s: %w", k, err)
	}
	return nil
}

// Read returns the server's maxconn; 0 there means unlimited.
func (k *MaxConn) Read(ctx context.Context) (trimtab.Amount, error) {
	v, _, err := k.look(ctx)
	if err != nil {
		return v, fmt.Errorf("read %s: %w", k, err)
	}
	return v, nil
}

// Nearest rounds to whole requests, at least one: 0 would be no limit.
func (k *MaxConn) Nearest(a trimtab.Amount) trimtab.Amount {
	if a.Unlimited {
		return a
	}
	return trimtab.Units(math.Min(math.Max(math.Round(a.Value), 1), math.MaxUint32))
}

// Write sets maxconn in a connection that also reads which process answers and what its limit was.
// If that is another process than before, Write restores its limit and returns trimtab.ErrStale.
func (k *MaxConn) Write(ctx context.Context, a trimtab.Amount) error {
	err := errors.Join(ctx.Err(), a.Validate())
	var found haproxy.Backend
	if err == nil {
		_, found, err = k.look(ctx)
	}
	if err == nil {
		err = k.set(ctx, found.Scope, k.Nearest(a))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", k, err)
	}
	return nil
}

// set does the work of Write, given the scope in which the servers are listed.
func (k *MaxConn) set(ctx context.Context, scope string, a trimtab.Amount) error {
	found, err := haproxy.LookIn(ctx, k.config.Socket, k.config.Backend, scope, k.command(a))
	if err != nil {
		return err
	}
	if found.Of == k.of {
		return haproxy.Set(found.Rest)
	}
	err = fmt.Errorf("HAProxy was reloaded meanwhile: %w", trimtab.ErrStale)
	if had, ok := found.Limit(k.config.Server); ok {
		_, bad := haproxy.Ask(ctx, k.config.Socket, k.command(had))
		err = errors.Join(err, bad)
	}
	return err
}

// command returns the HAProxy command that sets maxconn.
func (k *MaxConn) command(a trimtab.Amount) string {
	return "set maxconn server " + k.config.Backend + "/" + k.config.Server + " " + strconv.FormatUint(uint64(a.Value), 10)
}
